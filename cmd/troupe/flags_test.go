package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	for in, want := range map[string]string{
		"-p hi":                                       "-p|hi",
		"--allowed-tools Read Edit -p hi":             "--allowed-tools=Read|--allowed-tools=Edit|-p|hi",
		"-p hi --allowedTools Read":                   "-p|hi|--allowed-tools=Read",
		"--allowed-tools=Read hi":                     "--allowed-tools=Read|hi",
		"--allowed-tools Read -- hi":                  "--allowed-tools=Read|--|hi",
		"--allowed-tools --model m":                   "--allowed-tools|--model|m",
		"--allowed-tools":                             "--allowed-tools",
		"--add-dir a b --disallowedTools Bash":        "--add-dir=a|--add-dir=b|--disallowed-tools=Bash",
		"--disallowedTools=Bash,Edit --verbose x":     "--disallowed-tools=Bash,Edit|--verbose|x",
		"--allowed-tools Read --allowed-tools Edit -": "--allowed-tools=Read|--allowed-tools=Edit|--allowed-tools=-",
		"-- --allowed-tools Read":                     "--|--allowed-tools|Read",
	} {
		if got := strings.Join(spread(strings.Fields(in)), "|"); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestListOfRules(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                   nil,
		"Read":                               {"Read"},
		"Read,Edit":                          {"Read", "Edit"},
		"Read Edit":                          {"Read", "Edit"},
		" Read , Edit ":                      {"Read", "Edit"},
		"Bash(git *),Read":                   {"Bash(git *)", "Read"},
		"Bash(git add:*, x) Read":            {"Bash(git add:*, x)", "Read"},
		"Bash(echo (a b)) Edit":              {"Bash(echo (a b))", "Edit"},
		"Bash(git *":                         {"Bash(git *"}, // told as wrong by the parser of rules
		"Read(a b/*.txt),WebFetch(domain:x)": {"Read(a b/*.txt)", "WebFetch(domain:x)"},
	} {
		var l list
		if err := l.Set(in); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, []string(l)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

// A prompt may be the name of a command; a command's flag is no -p of ours.
func TestPrints(t *testing.T) {
	for in, want := range map[string]bool{"-p demo": true, "demo": false, "demo --keep": false, "-- -p": false, "--print x": true, "-pc doctor": true, "-cp": true, "-rp": false, "-c doctor": false, "-pr 12": true, "sessions list": false} {
		if got := prints(strings.Fields(in)); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}
