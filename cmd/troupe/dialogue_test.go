package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// dialogue FILE ARGS... runs troupe with ARGS and plays the part of a program
// that drives it, as FILE says; "! dialogue" wants it to fail at the end. In FILE
//
//	> JSON   is sent
//	< JSON   is waited for: a line that has in it all that JSON has, whatever
//	         else it has; a text "~t" is any text with t in it
//	<& JSON  the same, but it may have come on the way to the line before
//	<! JSON  must not have come since the line that was waited for before
//	touch F  makes the file F, for which an agent may wait
//	close    closes the input
//
// What troupe says on stderr is in stderr.txt. "$name" in a line that is waited for keeps the text that is there, and stands
// for it from then on.
func dialogue(ts *testscript.TestScript, neg bool, args []string) {
	env := ts.Value("env").(*testscript.Env)
	path, err := exec.LookPath("troupe")
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(env.Vars, "MODEL="+ts.Getenv("MODEL"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	notes, err := os.Create(ts.MkAbs("stderr.txt"))
	ts.Check(err)
	defer notes.Close()
	cmd.Stderr = notes
	ts.Check(cmd.Start())
	d := &dialog{ts: ts, out: bufio.NewReader(out), vars: map[string]string{}}
	// A program that says nothing more of what is waited for would wait for ever.
	silence := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer func() { // also when a line was missed
		silence.Stop()
		_ = in.Close()
		_ = cmd.Process.Kill()
	}()
	for n, text := range strings.Split(ts.ReadFile(args[0]), "\n") {
		d.number = n + 1
		switch {
		case text == "" || text[0] == '#':
		case strings.HasPrefix(text, "> "):
			_, err := in.Write([]byte(d.expand(text[2:]) + "\n"))
			ts.Check(err)
		case strings.HasPrefix(text, "< "):
			d.await(d.expand(text[2:]))
		case strings.HasPrefix(text, "<& "):
			d.also(d.expand(text[3:]))
		case strings.HasPrefix(text, "<! "):
			d.missing(d.expand(text[3:]))
		case strings.HasPrefix(text, "touch "):
			ts.Check(os.WriteFile(ts.MkAbs(text[6:]), nil, 0o600))
		case text == "close":
			ts.Check(in.Close())
		default:
			ts.Fatalf("line %d is none of a dialogue: %s", d.number, text)
		}
	}
	for d.next() {
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if (err != nil) != neg {
		d.fail("it ended with %v", err)
	}
}

type dialog struct {
	ts     *testscript.TestScript
	out    *bufio.Reader
	vars   map[string]string
	number int
	seen   []string // lines since the one that was waited for last, and that one
	all    []string
}

// next reads a line; false is the end.
func (d *dialog) next() bool {
	line, err := d.out.ReadString('\n')
	if line = strings.TrimSpace(line); line != "" {
		d.seen, d.all = append(d.seen, line), append(d.all, line)
		if !json.Valid([]byte(line)) {
			d.fail("not JSON: %s", line)
		}
	}
	return err == nil
}

func (d *dialog) fail(format string, args ...any) {
	d.ts.Fatalf("line %d: %s\n%s\n%s", d.number, fmt.Sprintf(format, args...), strings.Join(d.all, "\n"), d.ts.ReadFile("stderr.txt"))
}

func (d *dialog) expand(text string) string {
	for name, value := range d.vars {
		text = strings.ReplaceAll(text, `"$`+name+`"`, `"`+value+`"`)
	}
	return text
}

func (d *dialog) await(want string) {
	d.seen = nil
	for d.next() {
		if d.fits(want, d.seen[len(d.seen)-1], true) {
			return
		}
	}
	d.fail("%s has not come", want)
}

// also waits for a line that may have come on the way to the last one.
func (d *dialog) also(want string) {
	for _, line := range d.seen {
		if d.fits(want, line, true) {
			return
		}
	}
	for d.next() {
		if d.fits(want, d.seen[len(d.seen)-1], true) {
			return
		}
	}
	d.fail("%s has not come", want)
}

func (d *dialog) missing(want string) {
	for _, line := range d.seen {
		if d.fits(want, line, false) {
			d.fail("it came: %s", line)
		}
	}
}

// fits reports whether a line has in it what is wanted.
func (d *dialog) fits(want, line string, bind bool) bool {
	var w, l any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		d.fail("%v", err)
	}
	d.ts.Check(json.Unmarshal([]byte(line), &l))
	vars := map[string]string{}
	if !within(w, l, vars) {
		return false
	}
	for name, value := range vars {
		if bind {
			d.vars[name] = value
		}
	}
	return true
}

func within(want, got any, vars map[string]string) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range want {
			if value, there := g[k]; !ok || !there && v != nil || !within(v, value, vars) {
				return false
			}
		}
		return ok
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !within(want[i], g[i], vars) {
				return false
			}
		}
		return true
	case string:
		g, ok := got.(string)
		switch {
		case ok && strings.HasPrefix(want, "$"):
			vars[want[1:]] = g
			return true
		case ok && strings.HasPrefix(want, "~"):
			return strings.Contains(g, want[1:])
		}
		return ok && g == want
	}
	return want == got
}
