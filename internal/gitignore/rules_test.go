package gitignore

import (
	"strings"
	"testing"
)

func TestCovers(t *testing.T) {
	r := Parse([]byte("secret/\n!secret/open\n*.key\n!ok.key\n"))
	for path, want := range map[string]Verdict{
		"secret/open":   Ignored,
		"a/secret/x/y":  Ignored,
		"a/b.key":       Ignored,
		"a/ok.key":      Included,
		"a/b":           Unmentioned,
		"secretive/a":   Unmentioned,
		"b.key/ok.key":  Ignored,
		"/secret/inner": Ignored,
	} {
		if got := r.Covers(path, false); got != want {
			t.Errorf("Covers(%q) = %q, want %q", path, got, want)
		}
	}
	if got := r.Match("secret/open", false); got != Included {
		t.Errorf("Match looks at the path alone, got %q", got)
	}
}

func TestNilHasNoRules(t *testing.T) {
	var c *Chain
	if got := c.Enter("a").Match("b", false); got != Unmentioned {
		t.Errorf("nil chain: %q", got)
	}
	if got := c.With(Parse([]byte("b"))).Match("b", false); got != Ignored {
		t.Errorf("rules on a nil chain: %q", got)
	}
	var r *Rules
	if got := r.Covers("a/b", false); got != Unmentioned {
		t.Errorf("nil rules: %q", got)
	}
}

// Two directories entered from one share no memory that the other could see.
func TestChainsDoNotTouchEachOther(t *testing.T) {
	top := Root(Parse([]byte("x\n")))
	for range 6 {
		a := top.Enter("a").With(Parse([]byte("only-a\n")))
		b := top.Enter("b").With(Parse([]byte("only-b\n")))
		if a.Match("only-a", false) != Ignored || a.Match("only-b", false) != Unmentioned || b.Match("only-b", false) != Ignored {
			t.Fatal("rules of one directory hold in its neighbour")
		}
		top = top.With(Parse([]byte("y\n")))
	}
}

// A pattern made to cost time must end all the same. Without memory of what
// was tried this would not end before the test is killed.
func TestHostilePattern(t *testing.T) {
	for pattern, path := range map[string]string{
		strings.Repeat("**/", 40) + "z":          strings.Repeat("a/", 40) + "b",
		strings.Repeat("**/*a*/", 20) + "z":      strings.Repeat("aaaa/", 300) + "b",
		"/" + strings.Repeat("a*", 40) + "z":     strings.Repeat("a", 200),
		strings.Repeat("**/", 300) + "[a-z]?*/z": strings.Repeat("a/", 1000) + "b",
	} {
		if got := Parse([]byte(pattern)).Match(path, false); got != Unmentioned {
			t.Errorf("%.40q: got %q", pattern, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a/**/b\n!c[[:digit:]]\n", "a/x/b")
	f.Add("[", "[")
	f.Add("\\", "\\")
	f.Add("**/[!\n", "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		r := Parse([]byte(text))
		if r.Match(path, false) == Ignored && r.Match(path, true) == Unmentioned {
			t.Errorf("a file is ignored where a directory is not mentioned: %q %q", text, path)
		}
		if i := strings.LastIndexByte(path, '/'); i > 0 {
			if c := Root(r).Enter(path[:i]); c.Match(path[i+1:], true) != r.Match(path, true) {
				t.Errorf("chain and rules differ: %q %q", text, path)
			}
		}
	})
}
