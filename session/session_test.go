package session_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("TEST_HOLD_SESSION"); dir != "" {
		hold(dir)
	}
	goleak.VerifyTestMain(m)
}

// hold opens a session, says so, and keeps it until its input ends.
func hold(dir string) {
	if _, err := session.Open(dir, time.Now); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// still is a clock that does not move: the order of records must not need it.
func still() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

const id = "0b5e0f0a-1111-4222-8333-944444444444"

func create(t *testing.T) *session.Folder {
	t.Helper()
	f, err := session.Create(t.TempDir(), "/some/project", id, still)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func open(t *testing.T, dir string) *session.Folder {
	t.Helper()
	f, err := session.Open(dir, still)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func lead(t *testing.T, f *session.Folder) *session.Log {
	t.Helper()
	l, err := f.Log(session.Lead)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *session.Log, events ...troupe.Event) {
	t.Helper()
	for _, ev := range events {
		if err := l.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
}

func closed(t *testing.T, f *session.Folder) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func said(id, text string) troupe.Event {
	return troupe.Received{ID: id, From: "user", Message: troupe.Say(troupe.User, text)}
}

func answered(text string) troupe.Event {
	return troupe.Replied{Reply: troupe.Reply{Message: troupe.Say(troupe.Assistant, text), Model: "m"}}
}

func begun() troupe.Event {
	return troupe.Started{Agent: session.Lead, Request: troupe.Request{Model: "script/m", System: "s"}, Mode: "default",
		Place: troupe.Place{Dir: "/some/project"}}
}

// texts is the conversation that a log folds to, and how much of it was lost.
func texts(t *testing.T, path string) (out []string, skipped int) {
	t.Helper()
	s, bad, err := session.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Request.Messages {
		out = append(out, m.Content.Text())
	}
	return out, len(bad)
}

func TestALogFoldsToWhatWasSaid(t *testing.T) {
	f := create(t)
	l := lead(t, f)
	add(t, l, begun(), said("1", "go"), troupe.Streaming{Delta: troupe.Delta{Text: "he"}}, answered("hello"))
	closed(t, f)
	got, skipped := texts(t, session.LogPath(f.Dir, session.Lead))
	if want := []string{"go", "hello"}; !cmp.Equal(got, want) || skipped != 0 {
		t.Errorf("got %v, %d skipped; want %v", got, skipped, want)
	}
	raw, err := os.ReadFile(session.LogPath(f.Dir, session.Lead))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(raw, []byte(`{"V":1,`)) || bytes.Count(raw, []byte("\n")) != 3 {
		t.Errorf("log is\n%s", raw)
	}
}

// S92: a record that a crash has torn at any byte costs itself and nothing else.
func TestATornLastLineCostsNothingElse(t *testing.T) {
	f := create(t)
	add(t, lead(t, f), begun(), said("1", "go"), answered("hello"), said("2", "and then"))
	closed(t, f)
	path := session.LogPath(f.Dir, session.Lead)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		for turn := range 2 {
			f := open(t, f.Dir)
			add(t, lead(t, f), said(fmt.Sprint("new", turn), fmt.Sprint("turn ", turn)))
			closed(t, f)
		}
		got, skipped := texts(t, path)
		want, lost := []string{"go", "hello", "turn 0", "turn 1"}, 1
		switch cut {
		case last:
			lost = 0
		case len(whole) - 1: // only the end of the line was missing
			want, lost = []string{"go", "hello", "and then", "turn 0", "turn 1"}, 0
		}
		if !cmp.Equal(got, want) || skipped != lost {
			t.Fatalf("cut at %d: got %v, %d skipped; want %v, %d", cut-last, got, skipped, want, lost)
		}
	}
}

// S93: broken lines in the middle are reported and skipped; what follows counts.
func TestBrokenMiddleLinesAreSkippedAndTold(t *testing.T) {
	f := create(t)
	l := lead(t, f)
	add(t, l, begun())
	for i := range 50 {
		add(t, l, said(fmt.Sprint("q", i), fmt.Sprint("question ", i)),
			troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
				troupe.ToolUse{ID: fmt.Sprint("c", i), Name: "Read", Input: []byte("{}")}}}}},
			troupe.ToolEnded{Use: fmt.Sprint("c", i), Result: troupe.Answer("x")}, answered(fmt.Sprint("answer ", i)))
	}
	closed(t, f)
	path := session.LogPath(f.Dir, session.Lead)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines[100] = []byte("{\"Time\":garbage\n") // an answer
	lines[102] = []byte("\x00\xff\n")          // a reply that calls a tool
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s, bad, err := session.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(bad) != 2 || bad[0].Line != 101 || bad[1].Line != 103 || !strings.Contains(bad[0].Error(), "lead.jsonl:101: broken record") {
		t.Errorf("damage: %v", bad)
	}
	if err := troupe.Valid(s.Request.Messages); err != nil {
		t.Error(err)
	}
	msgs := s.Request.Messages
	if got := msgs[len(msgs)-1].Content.Text(); got != "answer 49" {
		t.Errorf("the conversation ends with %q", got)
	}
}

func TestALogOfANewerVersionIsNotTouched(t *testing.T) {
	f := create(t)
	closed(t, f)
	path := session.LogPath(f.Dir, session.Lead)
	if err := os.WriteFile(path, []byte(`{"V":2,"Time":"2026-11-30T12:00:00Z","Event":{"Begun":{}}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := session.Load(path); !errors.Is(err, session.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
}

// A session has one writer: a second one, of this or another process, is told
// which process has it; when that one is killed the session is free.
func TestOneWriter(t *testing.T) {
	f := create(t)
	if _, err := session.Open(f.Dir, still); !errors.Is(err, session.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v, want ErrInUse with our process ID", err)
	}
	if err := session.Remove(f.Dir); !errors.Is(err, session.ErrInUse) {
		t.Errorf("removing a live session: got %v, want ErrInUse", err)
	}
	closed(t, f)

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_HOLD_SESSION="+f.Dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := session.Open(f.Dir, still); !errors.Is(err, session.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("got %v, want ErrInUse with process ID %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	closed(t, open(t, f.Dir))
	if err := session.Remove(f.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Open(f.Dir, still); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	f := create(t)
	add(t, lead(t, f), begun(), troupe.Sent{Body: []byte("{}")})
	sub, err := f.Log("a12345678")
	if err != nil {
		t.Fatal(err)
	}
	add(t, sub, begun())
	closed(t, f)
	root := filepath.Dir(filepath.Dir(f.Dir))
	n := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || n < 7 {
		t.Errorf("saw %d files, %v", n, err)
	}
}

// No two directories share a folder: not by case, script, length, or by
// characters that were replaced.
func TestProjectNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, dir := range []string{"/a/b", "/a/B", "/a-b", "/a/b ", "/a_b", "/日本/プロジェクト", "/日本/プロジェクド", "/проект", "/проёкт",
		"/e\u0301", "/\u00e9", "/", "/" + long, "/" + long + "y", "/.", "/..x", "/a\nb", "/CON", "/con"} {
		name := session.ProjectName(dir)
		if other, ok := seen[strings.ToLower(name)]; ok && filepath.Clean(other) != filepath.Clean(dir) {
			t.Errorf("%q and %q share %s", dir, other, name)
		}
		seen[strings.ToLower(name)] = dir
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(name) > 64 || name == "" {
			t.Errorf("%q becomes %q", dir, name)
		}
	}
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if session.ProjectName(real) != session.ProjectName(link) {
		t.Error("a link has another name than what it leads to")
	}
}

func TestIDsAreChecked(t *testing.T) {
	root := t.TempDir()
	for _, bad := range []string{"", "..", "a/b", "A", "-x", "x y", strings.Repeat("a", 65), "*", "é"} {
		if _, err := session.Create(root, "/p", bad, still); err == nil {
			t.Errorf("created session %q", bad)
		}
		if _, err := session.Find(root, bad); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("find %q: %v", bad, err)
		}
	}
	f, err := session.Create(root, "/p", id, still)
	if err != nil {
		t.Fatal(err)
	}
	add(t, lead(t, f), begun())
	closed(t, f)
	if _, err := session.Create(root, "/another", id, still); !errors.Is(err, session.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
}

func TestListAndFind(t *testing.T) {
	root := t.TempDir()
	at := still()
	clock := func() time.Time { return at }
	for i, s := range []struct{ project, id string }{{"/a[1]", "aaa-1"}, {"/a[1]", "aab-2"}, {"/b", "abc-3"}} {
		at = still().Add(time.Duration(i) * time.Hour)
		f, err := session.Create(root, s.project, s.id, clock)
		if err != nil {
			t.Fatal(err)
		}
		start := begun().(troupe.Started)
		start.Place.Dir = s.project
		first := troupe.Message{Role: troupe.User, Content: troupe.Blocks{troupe.Text("facts"), troupe.Text("prompt of " + s.id)}}
		add(t, lead(t, f), start, troupe.Received{ID: "1", From: "user", Message: first}, said("2", "more"))
		at = at.Add(time.Minute)
		add(t, lead(t, f), said("3", strings.Repeat("a record longer than what is looked at first ", 4000)))
		closed(t, f)
	}
	all, err := session.List(root, "")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	if want := []string{"abc-3", "aab-2", "aaa-1"}; !cmp.Equal(ids, want) {
		t.Errorf("listed %v, want %v", ids, want)
	}
	if got := all[0]; got.Prompt != "prompt of abc-3" || got.Project != "/b" || got.Model != "script/m" || !got.Last.Equal(at) || !got.Started.Equal(at.Add(-time.Minute)) {
		t.Errorf("got %+v", got)
	}
	if mine, err := session.List(root, "/a[1]"); err != nil || len(mine) != 2 || mine[0].ID != "aab-2" {
		t.Errorf("of one project: %v, %v", mine, err)
	}
	if got, err := session.Find(root, "ab"); err != nil || got.ID != "abc-3" {
		t.Errorf("found %v, %v", got.ID, err)
	}
	if _, err := session.Find(root, "aa"); err == nil || !strings.Contains(err.Error(), "aaa-1, aab-2") {
		t.Errorf("got %v, want both names", err)
	}
}

// Followers get all records of all agents in the order in which they were
// written, though the clock stands still; one that reads slowly loses nothing.
func TestFollowersSeeAllInOrder(t *testing.T) {
	f := create(t)
	agents := []string{session.Lead, "a1", "a2"}
	add(t, lead(t, f), said("old", "before the mark"))
	mark := f.Mark()
	go func() {
		for i := range 300 {
			l, err := f.Log(agents[i%3])
			if err != nil {
				t.Error(err)
				return
			}
			if err := l.Append(said(fmt.Sprint(i), fmt.Sprint(i))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	for r, err := range f.Follow(ctx, mark, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Event.(troupe.Received).ID; got != fmt.Sprint(n) || r.Agent != agents[n%3] {
			t.Fatalf("record %d is %s of %s", n, got, r.Agent)
		}
		if n++; n == 300 {
			break
		}
	}
	recs, err := session.NewReader(f.Dir).Next()
	if err != nil || len(recs) != 301 {
		t.Errorf("a reader from outside sees %d records, %v", len(recs), err)
	}
}

// An agent that has ended holds no file open; its records can be followed, and
// it can go on.
func TestReleaseClosesFiles(t *testing.T) {
	f := create(t)
	before := openFiles(t)
	for i := range 50 {
		agent := fmt.Sprint("a", i)
		l, err := f.Log(agent)
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, begun(), troupe.Sent{Body: []byte("{}")}, said("1", "go"))
		if err := f.Release(agent); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(said("2", "more")); !errors.Is(err, session.ErrLog) {
			t.Errorf("after its release: %v", err)
		}
	}
	if got := openFiles(t); got > before {
		t.Errorf("%d files are open, %d before", got, before)
	}
	l, err := f.Log("a7")
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, said("3", "again"), troupe.Sent{Body: []byte("{1}")})
	n := 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, err := range f.Follow(ctx, nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 101 {
			break
		}
	}
	if got, skipped := texts(t, session.LogPath(f.Dir, "a7")); !cmp.Equal(got, []string{"go", "again"}) || skipped != 0 {
		t.Errorf("got %v, %d skipped", got, skipped)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if entries, err := os.ReadDir(dir); err == nil {
			return len(entries)
		}
	}
	return 0 // nothing tells here
}

// The exact bytes of each request come back, and the file grows with the
// conversation, not with its square.
func TestSentBytesAreKept(t *testing.T) {
	f := create(t)
	var want [][]byte
	body := `{"messages":["`
	for i := range 200 {
		body += strings.Repeat("ü<&>", 20) + fmt.Sprint(i)
		want = append(want, []byte(body+`"],"end":`+fmt.Sprint(i)+`}`))
		add(t, lead(t, f), troupe.Sent{Body: want[i]})
		if i == 100 { // another process goes on
			closed(t, f)
			f = open(t, f.Dir)
		}
	}
	closed(t, f)
	i := 0
	for r, err := range session.Requests(f.Dir, session.Lead) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Body, want[i]) {
			t.Fatalf("request %d is %q, want %q", i, r.Body, want[i])
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d requests, want %d", i, len(want))
	}
	info, err := os.Stat(filepath.Join(f.Dir, "lead.sent.jsonl"))
	if err != nil || info.Size() > int64(5*len(body)) {
		t.Errorf("%d bytes for a conversation of %d, %v", info.Size(), len(body), err)
	}
}

func TestALogThatCannotBeWrittenEndsTheRun(t *testing.T) {
	f := create(t)
	l := lead(t, f)
	closed(t, f)
	var last error
	n := 0
	run := func(yield func(troupe.Event, error) bool) {
		for yield(said(fmt.Sprint(n), "x"), nil) {
			n++
		}
	}
	for _, err := range l.Record(run) {
		last = err
	}
	if n != 0 || !errors.Is(last, session.ErrLog) {
		t.Errorf("after %d events: %v", n, last)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"V":1,"Time":"2026-11-30T12:00:00Z","Event":{"Received":{"ID":"1","From":"user","Message":{"Role":"user","Content":[{"Text":"hi"}]}}}}` + "\n"))
	f.Add([]byte("\n\n{\"Event\":{}}\n\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "lead.jsonl")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, err := session.Load(path)
		if err != nil {
			return
		}
		for _, ev := range s.Repair() {
			s.Apply(ev)
		}
		if err := troupe.Valid(s.Request.Messages); err != nil && len(s.Request.Messages) > 0 {
			t.Error(err)
		}
	})
}
