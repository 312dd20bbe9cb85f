package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

// The data model: what the simple commands of a command line are.
func TestParseScript(t *testing.T) {
	for text, want := range map[string][]string{
		"a 'b c' d\\ e":                {"a 'b c' 'd e'"},
		"a; b && c | d & e":            {"a", "b", "c", "d", "e"},
		"a $(b \"`c`\")":               {"a ?", "b ?", "c"},
		"a $X \"$Y\" z$Z":              {"a ? ? z?"},
		"a {b,c}d ~/e ~root":           {"a bd cd /home/user/e ?root"},
		"a *.go x[ab] '*'":             {"a ?.go x?ab] *"},
		"a $'b' $'c\\n' $'\\x41'":      {"a b 'c\n' ?"},
		"a \"b\\\"c\\d\"":              {"a 'b\"c\\d'"},
		"f() { a; }; f":                {"a", "f"},
		"X=1 a":                        {"a"},
		"export X=1 Y":                 {"export X=1 Y"},
		"a --x=~/y":                    {"a --x=?/y"},
		"a {} {x} HEAD@{1}":            {"a {} {x} HEAD@{1}"},
		"a <(b) >(c)":                  {"a /dev/fd/63 /dev/fd/63", "b", "c"},
		"a \"$(cat <<'E'\nb\n\nE\n)\"": {"a b", "cat"},
	} {
		s := parseScript(text, "/home/user")
		var got []string
		for _, c := range s.commands {
			got = append(got, strings.ReplaceAll(quoteWords(c.words), string(anything), "?"))
		}
		if diff := cmp.Diff(want, got); diff != "" || s.unclear != "" {
			t.Errorf("%q: %s %s", text, s.unclear, diff)
		}
	}
	for _, text := range []string{"a '", "a \x01", "a \xff", "a\x00", strings.Repeat("a ", maxScript), "x=(a)", "((x))", "echo ${!x}", "coproc a", "let x", strings.Repeat("$(", 30000), strings.Repeat("{ ", 20000)} {
		if parseScript(text, "").unclear == "" {
			t.Errorf("%.20q is clear", text)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		may           bool
	}{
		{"rm *", "\x00", true}, {"rm *", "r\x00 x", true}, {"rm *", "git\x00", false}, {"git push *", "git\x00", true}, {"git push *", "git\x00push", true}, {"rm", "\x00x", false}, {"*", "a", true}, {"a*b", "a\x00", true}, {"a*b", "\x00c", false}, {"", "\x00", true}, {"", "", true},
	} {
		if mayBecome(c.pattern, c.text) != c.may {
			t.Errorf("%q, %q: %v", c.pattern, c.text, !c.may)
		}
	}
}

// The directory changes with cd, for what follows and for links on the way.
func TestChangeOfDirectory(t *testing.T) {
	place := workspace(t)
	for command, want := range map[string]troupe.Effect{
		"cd src && cat a.go": troupe.Allow, "cd src && cat ../main.go": troupe.Ask, "cd src/.. && cat main.go": troupe.Allow, "cd secrets && cat key": troupe.Deny, "cd deep && cat key": troupe.Deny, "cd here && cat .env": troupe.Deny,
		"cd out && ls": troupe.Ask, "(cd src); cat a.go": troupe.Allow, "while :; do cd src; cat a; done": troupe.Ask, "cd src && git status": troupe.Ask, "cd src && ls *.go": troupe.Ask, "cd src && cat link.txt": troupe.Deny,
		"bash -c 'cd src; cat ../../x'": troupe.Ask, "builtin cd / && cat etc/passwd": troupe.Ask,
	} {
		if v := policy(t, Default, "deny Read(.env)", "deny Read(./secrets/**)").Decide(shell(place, command)); v.Effect != want {
			t.Errorf("%q: %+v, want %s", command, v, want)
		}
	}
}

// cd .. leaves a link the way it came, but where there is nothing, bash goes up
// from where the link leads to.
func TestChangeOfDirectoryBehindLink(t *testing.T) {
	place := workspace(t)
	for _, dir := range []string{"a/b", "a/s"} {
		if err := os.MkdirAll(filepath.Join(place.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/b", filepath.Join(place.Dir, "l")); err != nil {
		t.Fatal(err)
	}
	p := policy(t, Bypass, "deny Read(./a/s/key)", "deny Read(./main.go)")
	for _, command := range []string{"cd l && cd ../s && cat key", "cd l && cat ../s/key", "cd l && cd .. && cat main.go"} {
		if v := p.Decide(shell(place, command)); v.Effect != troupe.Deny {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// In a loop or a function, cd may be run again and lead further.
func TestRepeatedChangeOfDirectory(t *testing.T) {
	place := workspace(t)
	if err := os.MkdirAll(filepath.Join(place.Dir, "d", "d", "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../outside", filepath.Join(place.Dir, "d", "d", "d", "d")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"for i in 1 2 3 4; do cd d; done; cat file", "while cd d; do cat file; done", "f() { cd d; }; f; f; f; f; cat file"} {
		if v := policy(t, Default, "allow Bash(f *)").Decide(shell(place, command)); v.Effect != troupe.Ask {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// A rule without wildcards is for one command line, letter by letter.
func TestExactRules(t *testing.T) {
	place := workspace(t)
	p := policy(t, DontAsk, "allow Bash(npm ci && npm test)", "allow Bash(PATH=./bin make)", "allow Bash(git rebase --exec 'go test' main)", "allow Bash(watch ls)", "allow Bash(make all)", "allow Bash(eval \"$X\")", "deny Bash(npm publish *)")
	for command, want := range map[string]bool{
		"npm ci && npm test": true, " npm ci && npm test\n": true, "npm ci": false, "npm ci && npm test x": false, "PATH=./bin make": true, "PATH=./evil make": false, "PATH=./bin make all": false, "git rebase --exec 'go test' main": true,
		"git rebase --exec 'rm x' main": false, "watch ls": true, "watch ls -l": false, "make all": true, "timeout 5 make all": true, "make all && ls": true, "make all > /etc/x": false,
	} {
		if v := p.Decide(shell(place, command)); (v.Effect == troupe.Allow) != want {
			t.Errorf("%q: %+v", command, v)
		}
	}
}

// Long lines that are made to keep a parser, a glob or the braces busy come to
// an end, and are not allowed.
func TestLongLines(t *testing.T) {
	place := workspace(t)
	p := policy(t, Bypass, evasionRules()...)
	for _, part := range []string{"((", "$((", "${a:-", "`", "{a,b}", "{1..9}", "a/", "eval ", "xargs ", "cat *; ", "cat a=b ", "f(){ ", "rm ", "-"} {
		for _, start := range []string{"rm ", "$X ", "eval rm "} {
			if v := p.Decide(shell(place, start+strings.Repeat(part, 30000/len(part)))); v.Effect == troupe.Allow {
				t.Errorf("%s%s...: %+v", start, part, v)
			}
		}
	}
	nested := "rm x"
	for range 8 {
		nested = "bash -c " + quoteWords([]word{{text: nested}})
	}
	if v := p.Decide(shell(place, nested)); v.Effect == troupe.Allow {
		t.Errorf("nested shells: %+v", v)
	}
}

// Whatever a command line is, the decision does not panic, and a denied
// command in it is seen.
func FuzzShell(f *testing.F) {
	for _, s := range moreEvasions() {
		f.Add(s)
	}
	place := workspace(f)
	p := policy(f, Bypass, "deny Bash(forbidden *)", "allow Bash", "allow Bash(*)", "allow Read(//**)")
	f.Fuzz(func(t *testing.T, text string) {
		p.Decide(shell(place, text))
		for _, whole := range []string{"forbidden; " + text, "forbidden x\n" + text, "(forbidden) && " + text, "echo $(forbidden)\n" + text} {
			if v := p.Decide(shell(place, whole)); v.Effect == troupe.Allow {
				t.Errorf("%q is allowed: %+v", whole, v)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	place := workspace(b)
	p := policy(b, Default, append(evasionRules(), "allow Bash(npm run *)", "allow Bash(make *)", "deny Bash(curl *)", "deny Bash(sudo *)")...)
	for name, c := range map[string]*troupe.Call{
		"read": call(place, "Read", "file_path", "src/a.go"), "write": call(place, "Write", "file_path", "src/a.go"), "shell": shell(place, "go test ./..."),
		"pipe": shell(place, "cd src && grep -n func a.go | head -5; timeout 10 git status 2>&1"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Decide(c)
			}
		})
	}
}
