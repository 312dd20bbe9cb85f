package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

// A desk is an agent with the file tools, in a directory.
type desk struct {
	t     *testing.T
	agent string
	dir   string
	files *Files
}

func noon() time.Time { return time.Date(2026, 1, 2, 12, 30, 15, 0, time.UTC) }

func newDesk(t *testing.T) desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, "a1", dir, NewFiles(NewJournal(noon), 0)}
}

// beside is another agent of the same session.
func (d desk) beside(agent string) desk {
	return desk{d.t, agent, d.dir, NewFiles(d.files.journal, 0)}
}

func (d desk) call(tool troupe.Tool, input any) (troupe.Result, error) {
	d.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		d.t.Fatal(err)
	}
	c := &troupe.Call{
		ToolUse: troupe.ToolUse{ID: "call", Name: tool.Spec().Name, Input: raw},
		Agent:   d.agent,
		Place:   troupe.Place{Dir: d.dir},
	}
	return tool.Call(d.t.Context(), c)
}

type args map[string]any

func (d desk) read(file string) (string, error) {
	d.t.Helper()
	res, err := d.call(Read{Files: d.files}, args{"file_path": file})
	return res.Content.Text(), err
}

func (d desk) write(file, content string) (string, error) {
	d.t.Helper()
	res, err := d.call(Write{Files: d.files}, args{"file_path": file, "content": content})
	return res.Content.Text(), err
}

func (d desk) edit(file, old, new string) (string, error) {
	d.t.Helper()
	res, err := d.call(Edit{Files: d.files}, args{"file_path": file, "old_string": old, "new_string": new})
	return res.Content.Text(), err
}

func (d desk) must(text string, err error) string {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("call failed: %v", err)
	}
	return text
}

// put writes a file as somebody else does, content is what is in it.
func (d desk) put(file, content string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, file), []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) content(file string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// has fails unless the file has the content, and nothing else was left in
// the directory.
func (d desk) has(file, content string) {
	d.t.Helper()
	if diff := cmp.Diff(content, d.content(file)); diff != "" {
		d.t.Errorf("content of %s (-want +got):\n%s", file, diff)
	}
	d.noTemps()
}

func (d desk) noTemps() {
	d.t.Helper()
	left, err := filepath.Glob(filepath.Join(d.dir, ".troupe-*"))
	if err != nil || len(left) > 0 {
		d.t.Errorf("temporary files left: %v %v", left, err)
	}
}

func wantErr(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Fatalf("error %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if strings.Contains(strings.SplitN(err.Error(), "; the nearest is:\n", 2)[0], "\n") {
		t.Errorf("error is more than a line: %q", err)
	}
}

func TestChangeNeedsRead(t *testing.T) {
	changes := map[string]func(desk) (string, error){
		"Write": func(d desk) (string, error) { return d.write("a.txt", "new\n") },
		"Edit":  func(d desk) (string, error) { return d.edit("a.txt", "two", "new") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.txt", "one\ntwo\n")
			_, err := change(d)
			wantErr(t, err, ErrNotRead, "Read it")
			d.has("a.txt", "one\ntwo\n")

			d.must(d.read("a.txt"))
			d.put("a.txt", "one\ntwo\nthree\n")
			_, err = change(d)
			wantErr(t, err, ErrChanged, "something else", "Read it again")
			d.has("a.txt", "one\ntwo\nthree\n")

			// Same size and time do not make a file the same.
			d.must(d.read("a.txt"))
			path := filepath.Join(d.dir, "a.txt")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			d.put("a.txt", "ONE\ntwo\nthree\n")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			_, err = change(d)
			wantErr(t, err, ErrChanged)
			d.has("a.txt", "ONE\ntwo\nthree\n")

			// A new time alone does not make it another.
			d.must(d.read("a.txt"))
			later := info.ModTime().Add(time.Hour)
			if err := os.Chtimes(path, later, later); err != nil {
				t.Fatal(err)
			}
			d.must(change(d))
		})
	}
}

func TestChangeByAnotherAgentIsNamed(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	other := d.beside("a2")
	d.must(d.read("a.txt"))
	d.must(other.read("a.txt"))
	d.must(other.edit("a.txt", "one", "two"))
	_, err := d.write("a.txt", "mine")
	wantErr(t, err, ErrChanged, "by agent a2 at 12:30:15")
	_, err = d.edit("a.txt", "two", "three")
	wantErr(t, err, ErrChanged, "by agent a2 at 12:30:15")

	d.put("a.txt", "by hand\n") // now a2 is not the author any more
	_, err = d.edit("a.txt", "by", "of")
	wantErr(t, err, ErrChanged, "something else")
	d.has("a.txt", "by hand\n")
}

func TestOwnChangeIsKnown(t *testing.T) {
	d := newDesk(t)
	d.must(d.write("new/dir/a.txt", "one\n"))
	d.must(d.edit("new/dir/a.txt", "one", "two"))
	d.must(d.write("new/dir/a.txt", "three\n"))
	d.must(d.edit("new/dir/a.txt", "three", "four"))
	d.has("new/dir/a.txt", "four\n")

	// Another agent's sight is its own.
	_, err := d.beside("a2").edit("new/dir/a.txt", "four", "five")
	wantErr(t, err, ErrNotRead)
}

func TestPartialReadIsEnough(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", strings.Repeat("line\n", 5000)+"end\n")
	if _, err := d.call(Read{Files: d.files}, args{"file_path": "a.txt", "offset": 10, "limit": 1}); err != nil {
		t.Fatal(err)
	}
	d.must(d.edit("a.txt", "end", "END"))
	d.has("a.txt", strings.Repeat("line\n", 5000)+"END\n")
}

func TestGoneFile(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	d.must(d.read("a.txt"))
	if err := os.Remove(filepath.Join(d.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	_, err := d.write("a.txt", "two\n")
	wantErr(t, err, ErrChanged, "gone")
	if _, err := os.Stat(filepath.Join(d.dir, "a.txt")); err == nil {
		t.Error("the file was made anew")
	}
	d.must(d.write("a.txt", "two\n"))
	d.has("a.txt", "two\n")
}

func TestForgottenMustBeReadAgain(t *testing.T) {
	d := newDesk(t)
	d.files = NewFiles(NewJournal(noon), 2)
	for _, name := range []string{"a", "b", "c"} {
		d.put(name, "one\n")
	}
	d.must(d.read("a"))
	d.must(d.read("b"))
	d.must(d.edit("a", "one", "two")) // a is used, so b is the oldest
	d.must(d.read("c"))
	_, err := d.edit("b", "one", "two")
	wantErr(t, err, ErrNotRead)
	d.must(d.edit("a", "two", "three"))
	d.must(d.edit("c", "one", "two"))
	if n := len(d.files.seen); n != 2 || d.files.recent.Len() != 2 {
		t.Errorf("%d files remembered, want 2", n)
	}
}

// Whatever uses a file makes it one that is remembered longer.
func TestUseKeepsInMemory(t *testing.T) {
	uses := map[string]func(f *Files){
		"seen again": func(f *Files) { f.saw("a", digest{1}) },
		"looked up":  func(f *Files) { f.lookUp("a") },
	}
	for name, use := range uses {
		f := NewFiles(NewJournal(noon), 2)
		f.saw("a", digest{1})
		f.saw("b", digest{2})
		use(f)
		f.saw("c", digest{3})
		if _, ok := f.lookUp("a"); !ok {
			t.Errorf("%s: a is forgotten", name)
		}
		if _, ok := f.lookUp("b"); ok {
			t.Errorf("%s: b is remembered", name)
		}
	}
}

// One of many agents that change a file at the same moment wins, and the rest
// hear who it was.
func TestOneWinnerAtTheSameMoment(t *testing.T) {
	const agents = 24
	d := newDesk(t)
	d.put("a.txt", "start\n")
	var start, done sync.WaitGroup
	start.Add(1)
	errs := make([]error, agents)
	for i := range agents {
		a := d.beside(fmt.Sprintf("agent-%d", i))
		a.must(a.read("a.txt"))
		done.Go(func() {
			start.Wait()
			if i%2 == 0 {
				_, errs[i] = a.edit("a.txt", "start", a.agent)
			} else {
				_, errs[i] = a.write("a.txt", a.agent+"\n")
			}
		})
	}
	start.Done()
	done.Wait()
	winner := strings.TrimSpace(d.content("a.txt"))
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			if winner != fmt.Sprintf("agent-%d", i) {
				t.Errorf("agent-%d was told that it won, the file is from %s", i, winner)
			}
			continue
		}
		wantErr(t, err, ErrChanged, "by agent "+winner+" at")
	}
	if won != 1 {
		t.Errorf("%d agents won, want 1", won)
	}
	d.noTemps()
	if n := len(d.files.journal.locks); n != 0 {
		t.Errorf("%d locks left", n)
	}
}

// Agents that read, change and try again when they were refused lose nothing.
func TestNoChangeIsLost(t *testing.T) {
	const agents, each = 6, 10
	d := newDesk(t)
	d.put("count", "")
	var done sync.WaitGroup
	for i := range agents {
		a := d.beside(fmt.Sprint(i))
		done.Go(func() {
			for range each {
				for {
					if _, err := a.read("count"); err != nil {
						t.Error(err)
						return
					}
					now, err := os.ReadFile(filepath.Join(d.dir, "count"))
					if err != nil {
						t.Error(err)
						return
					}
					_, err = a.write("count", string(now)+"x")
					if err == nil {
						break
					}
					if !errors.Is(err, ErrChanged) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	done.Wait()
	// A write whose content was read after the agent's Read is refused unless
	// nothing came between, so each success adds exactly one.
	if n := len(d.content("count")); n != agents*each {
		t.Errorf("%d changes in the file, want %d", n, agents*each)
	}
}

// What a killed run has left beside a file goes at the next write there, and when
// its session goes on; what another one is writing stays.
func TestLeftBehind(t *testing.T) {
	d := newDesk(t)
	self := proc.Owner()
	dead := self
	dead.Name = "1.1." + strings.SplitN(self.Name, ".", 3)[2] // a number that another process has now
	left := func(dir string) {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		d.put(filepath.Join(dir, filepath.Base(dead.Temporary(""))), "half")
		d.put(filepath.Join(dir, filepath.Base(self.Temporary(""))), "half")
	}
	count := func(dir string, want int) {
		t.Helper()
		if got, err := filepath.Glob(filepath.Join(d.dir, dir, ".troupe-*.tmp")); err != nil || len(got) != want {
			t.Errorf("in %q are %v, %v", dir, got, err)
		}
	}
	left("new")
	left("other")
	d.must(d.write("new/a.txt", "one\n"))
	count("new", 1)
	count("other", 2)
	left("")
	NewJournal(noon).Recover(troupe.Place{Dir: d.dir}, []troupe.ToolUse{{ID: "1", Name: "Write", Input: json.RawMessage(`{"file_path":"other/x.txt"}`)}})
	count("", 1)
	count("other", 1)
}
