package main

import (
	"testing"
	"time"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
)

// Flags come before the environment, and that before the settings.
func TestCrew(t *testing.T) {
	yes := true
	usual := host.Usual()
	for _, test := range []struct {
		name  string
		set   config.Crew
		env   []string
		flags flags
		crew  host.Crew
		wait  host.Patience
	}{
		{"nothing said", config.Crew{}, nil, flags{}, host.Crew{}, usual},
		{"settings", config.Crew{Concurrent: 2, Total: 3, Depth: 1, Fork: &yes, Foreground: true, Wait: time.Hour, WaitOthers: time.Minute}, nil, flags{},
			host.Crew{Most: 2, Total: 3, Depth: 1, Forking: true, Foreground: true}, host.Patience{Agents: time.Hour, Others: time.Minute}},
		{"environment", config.Crew{Fork: &yes, Wait: time.Hour},
			[]string{"TROUPE_FORK=0", "TROUPE_DISABLE_BACKGROUND_TASKS=true", "TROUPE_BACKGROUND_WAIT=0s", "TROUPE_BACKGROUND_WAIT_OTHERS=1s"}, flags{},
			host.Crew{Foreground: true}, host.Patience{Others: time.Second}},
		{"flag", config.Crew{}, []string{"TROUPE_FORK=0"}, flags{forking: true}, host.Crew{Forking: true}, usual},
	} {
		p := &program{env: test.env}
		crew, wait, err := p.crew(&test.flags, test.set)
		if err != nil || crew != test.crew || wait != test.wait {
			t.Errorf("%s: %+v, %+v, %v; want %+v, %+v", test.name, crew, wait, err, test.crew, test.wait)
		}
	}
	for _, env := range []string{"TROUPE_FORK=2", "TROUPE_DISABLE_BACKGROUND_TASKS=off?", "TROUPE_BACKGROUND_WAIT=5", "TROUPE_BACKGROUND_WAIT_OTHERS=-1s"} {
		if _, _, err := (&program{env: []string{env}}).crew(&flags{}, config.Crew{}); err == nil {
			t.Errorf("%s is taken", env)
		}
	}
}
