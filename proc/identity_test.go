package proc

import (
	"os"
	"testing"
)

func TestIdentity(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if self.PID != os.Getpid() || self.Start == 0 {
		t.Errorf("Self() = %+v", self)
	}
	later, reboot := self, self
	later.Start++
	reboot.Boot += "x"
	for name, tt := range map[string]struct {
		id   Identity
		want bool
	}{
		"this process":    {self, true},
		"other start":     {later, false},
		"other boot":      {reboot, false},
		"no such process": {Identity{PID: 1<<31 - 1, Start: self.Start, Boot: self.Boot}, false},
	} {
		got, err := Alive(tt.id)
		if err != nil || got != tt.want {
			t.Errorf("%s: Alive(%+v) = %v, %v; want %v", name, tt.id, got, err, tt.want)
		}
	}
}
