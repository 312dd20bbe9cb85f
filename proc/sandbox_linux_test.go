package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// sandbox returns a sandbox of a kind that works here, or skips the test.
func sandbox(t *testing.T, kind string) *Sandbox {
	t.Helper()
	find := findLandlock
	if kind == bubblewrap {
		troupetest.Need(t, "bwrap")
		find = findBubblewrap
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := find(self, env())
	if err == nil {
		err = s.try(t.Context(), t.TempDir(), env())
	}
	if err != nil {
		t.Logf("%s: %v", kind, err)
		if strings.Contains(err.Error(), "succeeded") { // it runs, and does not hold
			t.FailNow()
		}
		troupetest.Need(t, "working "+kind)
	}
	return s
}

// each runs a test with every kind of sandbox.
func each(t *testing.T, test func(t *testing.T, s *Sandbox)) {
	for _, kind := range []string{bubblewrap, landlock} {
		t.Run(kind, func(t *testing.T) { test(t, sandbox(t, kind)) })
	}
}

// confined runs a script and returns what it printed.
func confined(t *testing.T, s *Sandbox, l Limits, dir, script string) (string, Outcome) {
	t.Helper()
	var out bytes.Buffer
	c := Command{Path: "/bin/bash", Args: []string{"-c", script}, Dir: dir, Env: env(), Stdout: &out, Stderr: &out, Sandbox: s, Limits: l}
	end, err := Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String(), end
}

// tree makes files, all with the content "old", and returns their directory.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f = filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(dir, name string) string {
	data, _ := os.ReadFile(filepath.Join(dir, name))
	return string(data)
}

// Whatever way is tried, nothing changes outside of what is writable, and all
// works inside.
func TestSandboxHoldsWrites(t *testing.T) {
	ways := map[string]string{
		"create":    `echo new > $D/made`,
		"append":    `echo new >> $D/file`,
		"cut":       `: > $D/file`,
		"truncate":  `truncate -s 0 $D/file`,
		"remove":    `rm -f $D/file`,
		"rename":    `mv $D/file $D/made`,
		"move-out":  `mv $D/file .`,
		"move-in":   `echo x > a; mv a $D/made`,
		"replace":   `echo x > a; mv -f a $D/file`,
		"link":      `echo x > a; ln a $D/made`,
		"hard-link": `ln $D/file b; echo new > b`,
		"symlink":   `ln -s $D/file c; echo new > c`,
		"link-up":   `ln -s x $D/made`,
		"mkdir":     `mkdir $D/made`,
		"rmdir":     `rm $D/sub/x; rmdir $D/sub`,
		"fifo":      `mkfifo $D/made`,
		"copy":      `cp -r . $D/made`,
		"in-place":  `sed -i s/old/new/ $D/file`,
		"dd":        `dd if=/dev/zero of=$D/file bs=1 count=9`,
		"tee":       `echo new | tee $D/file`,
		"by-proc":   `echo new > /proc/self/root$D/file; cd $D; echo new > /proc/self/cwd/file`,
		"cd":        `cd $D && echo new > file`,
		"child":     `sh -c "(echo new > $D/file) & wait"`,
		"setsid":    `setsid sh -c "echo new > $D/file"`,
		"by-fd":     `exec 9< $D; echo new > /proc/self/fd/9/file`,
	}
	// changed runs all ways, each in directories of its own, and returns those
	// that changed something where they must not.
	changed := func(t *testing.T, s *Sandbox) (names []string) {
		in, out := tree(t), tree(t)
		var script strings.Builder
		for name, way := range ways {
			for _, file := range []string{"file", "sub/x"} {
				if err := os.MkdirAll(filepath.Join(out, name, "sub"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(out, name, file), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintf(&script, "mkdir %[1]s; (cd %[1]s; export D=%[2]s/%[1]s; %[3]s)\n", name, out, way)
		}
		said, _ := confined(t, s, Limits{Write: []string{in}}, in, script.String())
		t.Log(said)
		for name := range ways {
			dir := filepath.Join(out, name)
			if content(dir, "file") != "old" || content(dir, "sub/x") != "old" || exists(filepath.Join(dir, "made")) {
				names = append(names, name)
			}
		}
		return names
	}
	if free := changed(t, nil); len(free) != len(ways) {
		t.Errorf("only these change something when they run free: %q", free)
	}
	each(t, func(t *testing.T, s *Sandbox) {
		if names := changed(t, s); names != nil {
			t.Errorf("not held: %q", names)
		}
	})
}

func TestSandboxPermits(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		in, out := tree(t, "a", "sub/b"), tree(t, "file")
		script := `set -e
			echo new > a; mv a sub/a; ln sub/a c; ln -s c d; mkdir -p x/y; mv sub x/y/; rm -r x/y/sub/b; chmod 700 x; touch c
			echo x > /dev/null; echo x > ` + out + `/file; cat /etc/passwd > p; exec 3> >(cat > q); echo y >&3; exec 3>&-; wait
			mktemp -p /dev/shm > shm; rm $(cat shm); exit 7`
		said, end := confined(t, s, Limits{Write: []string{in, filepath.Join(out, "file"), filepath.Join(out, "missing")}}, in, script)
		if end.Code != 7 || content(in, "x/y/sub/a") != "new\n" || content(out, "file") != "x\n" || content(in, "p") == "" {
			t.Errorf("%+v\n%s", end, said)
		}
	})
}

// What may not be written in a writable directory: bubblewrap holds it, also
// against the trick with another directory in its place. Landlock says that it
// does not.
func TestSandboxInside(t *testing.T) {
	in := tree(t, "a", ".git/config", ".git/hooks/x", "deep/er/kept/f", "deep/er/kept/open/f")
	l := Limits{
		Write:   []string{in, filepath.Join(in, "deep/er/kept/open")},
		NoWrite: []string{filepath.Join(in, ".git/config"), filepath.Join(in, ".git/hooks"), filepath.Join(in, "deep/er/kept"), filepath.Join(in, "none")},
	}
	s := sandbox(t, bubblewrap)
	said, _ := confined(t, s, l, in, `
		echo new > a; echo new > .git/index; echo new > deep/er/f; echo new > deep/er/kept/open/f
		echo new > .git/config; rm -f .git/config; echo x > n; mv n .git/config; echo new > .git/hooks/x; echo new > .git/hooks/pre-commit
		mv .git g; mv deep d; mv deep/er e; rm -rf deep; echo new > deep/er/kept/f; chmod -R 777 .git/hooks; ln .git/hooks/x h; echo new > h`)
	for name, want := range map[string]string{"a": "new\n", ".git/index": "new\n", ".git/config": "old", ".git/hooks/x": "old", ".git/hooks/pre-commit": "",
		"deep/er/kept/f": "old", "g/config": "", "d/er/kept/f": "", "none": ""} {
		if got := content(in, name); got != want {
			t.Errorf("%s is %q, want %q\n%s", name, got, want, said)
		}
	}
	if lacks := s.Lacks(l); lacks != nil {
		t.Errorf("bubblewrap lacks %q", lacks)
	}
	lacks := (&Sandbox{kind: landlock}).Lacks(Limits{Write: l.Write, NoWrite: append(l.NoWrite, "/elsewhere"), NoRead: []string{"/secret"}, NoNetwork: true})
	if len(lacks) != 6 || !strings.Contains(lacks[0], in+"/.git/config") || !strings.Contains(lacks[4], "/secret") || !strings.Contains(lacks[5], "network") {
		t.Errorf("%q", lacks)
	}
}

// What is not in a writable directory Landlock holds, too, also when something
// writable lies in it.
func TestSandboxBetween(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := tree(t, "f", "in/f")
		l := Limits{Write: []string{filepath.Join(dir, "in")}, NoWrite: []string{dir}}
		if lacks := s.Lacks(l); lacks != nil {
			t.Fatal(lacks)
		}
		confined(t, s, l, dir, "echo new > f; echo new > in/f")
		if content(dir, "f") != "old" || content(dir, "in/f") != "new\n" {
			t.Errorf("%q, %q", content(dir, "f"), content(dir, "in/f"))
		}
	})
}

func TestSandboxHidesAndCutsOff(t *testing.T) {
	s := sandbox(t, bubblewrap)
	dir := tree(t, "secret/key", "secret/public/key", "file", "work/f")
	l := Limits{
		Write:     []string{filepath.Join(dir, "work")},
		NoRead:    []string{filepath.Join(dir, "secret"), filepath.Join(dir, "file"), filepath.Join(dir, "none")},
		Read:      []string{filepath.Join(dir, "secret/public"), "/etc"},
		NoNetwork: true,
	}
	said, _ := confined(t, s, l, dir, "cat secret/key file; ls secret; touch secret/x; cat secret/public/key work/f; umount secret; cat secret/key; cat /proc/net/dev")
	if n := strings.Count(said, "old"); n != 2 {
		t.Errorf("read %d files, want 2\n%s", n, said)
	}
	if strings.Contains(said, "eth") || !strings.Contains(said, "lo:") {
		t.Errorf("devices:\n%s", said)
	}
}

// A confined program sees no open file of ours, and does not signal us.
func TestSandboxLeavesOthersAlone(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := tree(t)
		said, _ := confined(t, s, Limits{Write: []string{dir}}, dir, "ls /proc/self/fd | sort -n | tr '\\n' ' '; kill -0 "+strconv.Itoa(os.Getpid())+" && echo signalled; true")
		if !strings.HasPrefix(said, "0 1 2 3 ") || strings.HasPrefix(said, "0 1 2 3 4 ") { // 3 is the directory that ls reads
			t.Errorf("open files: %s", said)
		}
		if strings.Contains(said, "signalled") {
			t.Error("it could signal this process")
		}
	})
}

// What a confined program leaves running is ended, and counted as without a
// sandbox; so it is when it is interrupted.
func TestSandboxLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := tree(t)
		l := Limits{Write: []string{dir}}
		if _, end := confined(t, s, l, dir, "sleep 1000 & setsid sleep 1000 & exit 3"); end.Code != 3 || end.Left != 2 {
			t.Errorf("%+v", end)
		}
		if said, end := confined(t, s, l, dir, "echo x"); end.Left != 0 || said != "x\n" {
			t.Errorf("%+v %q", end, said)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		out := &screen{news: make(chan struct{}, 1)}
		go func() {
			<-out.news
			cancel(stop)
		}()
		_, err := Run(ctx, Command{Path: "/bin/bash", Args: []string{"-c", "echo up; sleep 1000"}, Dir: dir, Env: env(), Stdout: out, Sandbox: s, Limits: l})
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	})
}

// A launcher that cannot confine runs nothing.
func TestLauncherThatCannotConfine(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := tree(t)
	for _, stdin := range []string{"", "{", `{"Write": 3}`} {
		var out bytes.Buffer
		c := Command{Path: "/bin/bash", Args: []string{"-c", `exec 3<<<"$1"; exec "$0" __confined /bin/sh -c "echo ran"`, self, stdin}, Dir: dir, Env: env(), Stdout: &out, Stderr: &out}
		end, err := Run(t.Context(), c)
		if err != nil || end.Code != 126 || strings.Contains(out.String(), "ran\n") || !strings.Contains(out.String(), "did not run") {
			t.Errorf("%q: %+v, %v, %s", stdin, end, err, out.String())
		}
	}
}

// FindSandbox takes what it has seen to work and says why there is none.
func TestFindSandbox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lame := tree(t, "bwrap")
	fake := filepath.Join(lame, "bwrap")
	if err := os.Chmod(fake, 0o700); err != nil {
		t.Fatal(err)
	}
	// A bwrap that confines nothing: it runs what stands behind its options.
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nshift 2\nexec \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	poor := append(env(), "PATH="+lame+":/usr/bin:/bin")
	if s, err := FindSandbox(t.Context(), t.TempDir(), "", poor); !errors.Is(err, ErrNoSandbox) || !strings.Contains(err.Error(), "a forbidden write succeeded") {
		t.Errorf("%v, %v", s, err)
	}
	// Neither is a launcher that does not know what it is.
	if err := (&Sandbox{landlock, "/bin/true"}).try(t.Context(), t.TempDir(), env()); err == nil || !strings.Contains(err.Error(), "permitted write") {
		t.Errorf("%v", err)
	}
	want := sandbox(t, landlock)
	if s, err := FindSandbox(t.Context(), t.TempDir(), self, poor); err != nil || s.Name() != want.Name() {
		t.Errorf("%v, %v", s, err)
	}
	dir := t.TempDir()
	if s, err := FindSandbox(t.Context(), dir, self, env()); err != nil || !slices.Contains([]string{bubblewrap, landlock}, s.Name()) {
		t.Errorf("%v, %v", s, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
