package proc

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Only who is known to have lived here and to be dead is gone.
func TestOwner(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	o := Owner()
	if o.Gone(o.Name) {
		t.Error("this process is gone")
	}
	part := strings.Split(o.Name, ".")
	with := func(i int, text string) string {
		p := append([]string(nil), part...)
		p[i] = text
		return strings.Join(p, ".")
	}
	for name, want := range map[string]bool{
		with(1, "1"):            true, // the pid is another's now
		with(2, short("other")): true, // before the machine was started
		with(3, short("other")): false,
		with(0, "x"):            false,
		with(0, "-1"):           false,
		with(1, "-"):            false,
		with(2, ""):             false,
		o.Name + ".x":           false,
		"":                      false,
	} {
		if o.Gone(name) != want {
			t.Errorf("%q is gone: %v", name, !want)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	name := naming{short(self.Boot), part[3]}.name(child)
	if o.Gone(name) && cmd.ProcessState == nil {
		if _, err := Of(child.PID); err == nil {
			t.Error("a child that lives is gone")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !o.Gone(name) {
		t.Error("a child that has ended is there")
	}
}
