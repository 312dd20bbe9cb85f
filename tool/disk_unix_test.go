//go:build unix

package tool

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/statefile"
)

func TestWriteKeepsMode(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o755, 0o777, 0o755 | fs.ModeSetgid} {
		d := newDesk(t)
		d.put("a.sh", "one\n")
		path := filepath.Join(d.dir, "a.sh")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		d.must(d.read("a.sh"))
		d.must(d.edit("a.sh", "one", "two"))
		d.must(d.write("a.sh", "three\n"))
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("mode %v, want %v (%v)", info.Mode(), mode, err)
		}
		d.has("a.sh", "three\n")
	}
}

func TestNewFileTakesUmask(t *testing.T) {
	d := newDesk(t)
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	d.must(d.write("x/y/a.txt", "one\n"))
	for path, want := range map[string]fs.FileMode{"x/y/a.txt": 0o640, "x/y": 0o750, "x": 0o750} {
		info, err := os.Stat(filepath.Join(d.dir, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	d := newDesk(t)
	if err := os.MkdirAll(filepath.Join(d.dir, "real/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.put("real/a.txt", "one\n")
	for name, target := range map[string]string{
		"first":   "second",
		"second":  "real/a.txt",
		"dirlink": "real/deep",
		"nowhere": "dirlink/new.txt",
		"loop":    "loop",
	} {
		if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	isLink := func(name string) {
		t.Helper()
		info, err := os.Lstat(filepath.Join(d.dir, name))
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s is no link any more: %v %v", name, info.Mode(), err)
		}
	}
	d.must(d.read("first"))
	d.must(d.edit("second", "one", "two"))        // one file under all its names
	d.must(d.write("real/a.txt", "two\nthree\n")) // and no need to read it again
	isLink("first")
	isLink("second")
	d.has("real/a.txt", "two\nthree\n")

	d.must(d.write("nowhere", "made\n")) // a link that leads nowhere makes its target
	isLink("nowhere")
	d.has("real/deep/new.txt", "made\n")

	_, err := d.write("loop", "x")
	wantErr(t, err, nil, "link")
	isLink("loop")
}

func TestWriteKeepsHardLinks(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one, and more\n")
	if err := os.Link(filepath.Join(d.dir, "a.txt"), filepath.Join(d.dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	d.must(d.read("a.txt"))
	d.must(d.write("a.txt", "two\n"))
	d.has("a.txt", "two\n")
	d.has("b.txt", "two\n")
}

func TestReadOnlyFileIsRefused(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	if err := os.Chmod(filepath.Join(d.dir, "a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	d.must(d.read("a.txt"))
	_, err := d.edit("a.txt", "one", "two")
	wantErr(t, err, errReadOnly)
	d.has("a.txt", "one\n")
}

// What is not a regular file is refused at once. A test that hangs here has
// found its fault.
func TestOnlyRegularFiles(t *testing.T) {
	d := newDesk(t)
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(d.dir, "to-pipe")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(d.dir, "to-device")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(d.dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(d.dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, word := range map[string]string{
		"pipe": "is a named pipe", "to-pipe": "is a named pipe", "to-device": "is a device", "/dev/null": "is a device",
		"sub": "is a directory", "socket": "is a socket",
	} {
		_, err := d.read(name)
		wantErr(t, err, nil, word)
		_, err = d.write(name, "x")
		wantErr(t, err, nil, word)
		_, err = d.edit(name, "a", "b")
		wantErr(t, err, nil, word)
	}
	for _, pipe := range []string{"a.ipynb", "a.png"} {
		if err := syscall.Mkfifo(filepath.Join(d.dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = d.read(pipe)
		wantErr(t, err, nil, "is a named pipe")
	}
	_, err = d.call(NotebookEdit{Files: d.files}, args{"notebook_path": "a.ipynb", "cell_id": "x", "new_source": ""})
	wantErr(t, err, nil, "is a named pipe")
	_, err = d.read("sub")
	wantErr(t, err, errDirectory, "Glob")
}

// A path that becomes a pipe or a link after its kind was looked at.
func TestOpenFlagsNeverHangOrFollow(t *testing.T) {
	d := newDesk(t)
	pipe, link := filepath.Join(d.dir, "pipe"), filepath.Join(d.dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	d.put("a.txt", "one\n")
	if err := os.Symlink("a.txt", link); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDONLY|openFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f, err := os.OpenFile(link, os.O_RDONLY|openFlags, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("opened a link: %v %v", f, err)
	}
}

// The content is compared right before the file is replaced: here it changed
// after the check, in all ways there are to replace it.
func TestReplaceComparesLast(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"a.txt", "linked"} {
		d.put(name, "one\n")
	}
	if err := os.Link(filepath.Join(d.dir, "linked"), filepath.Join(d.dir, "second")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "linked"} {
		path := filepath.Join(d.dir, name)
		old, err := takeSnapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		d.put(name, "two\n")
		if err := replaceFile(t.Context(), path, old, []byte("three\n"), statefile.Owner{}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v, want %v", name, err, ErrChanged)
		}
		d.has(name, "two\n")
	}
	path := filepath.Join(d.dir, "new.txt")
	d.put("new.txt", "by somebody else\n")
	if err := replaceFile(t.Context(), path, snapshot{}, []byte("mine\n"), statefile.Owner{}); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want %v", err, ErrChanged)
	}
	d.has("new.txt", "by somebody else\n")
}

// A file that cannot be replaced, here since a directory with something in it
// has come in its place after the last comparison.
func TestNoTemporaryFileIsLeft(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	path := filepath.Join(d.dir, "a.txt")
	temp, err := writeTemp(filepath.Join(d.dir, "temporary"), 0o600, []byte("two\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(temp); err != nil {
		t.Fatal(err)
	}
	old, err := takeSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(t.Context(), path, old, []byte("two\n"), statefile.Owner{}); err == nil {
		t.Error("a directory was replaced")
	}
	if err := createFile(path, []byte("two\n"), statefile.Owner{}); !errors.Is(err, ErrChanged) {
		t.Errorf("create over a directory: %v", err)
	}
	d.noTemps()
}

func TestProcFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // they are Linux's
	}
	d := newDesk(t)
	text := d.must(d.read("/proc/self/status"))
	if !strings.HasPrefix(text, "     1\tName:") || !strings.Contains(text, "\tPid:\t") {
		t.Errorf("/proc/self/status shown as %.200q", text)
	}
}

// Files that call themselves regular and hold up their reader are not waited
// for. A test that hangs here has found its fault.
func TestNoFileIsWaitedFor(t *testing.T) {
	r, w, err := os.Pipe() // the reading end waits as such files do
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := syscall.SetNonblock(int(r.Fd()), true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("some\n"); err != nil {
		t.Fatal(err)
	}
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	in := unwaiting(r, info)
	buf := make([]byte, 100)
	if n, err := in.Read(buf); n != 5 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := in.Read(buf); n != 0 || !errors.Is(err, errWaits) {
		t.Errorf("read %d, %v; want %v", n, err, errWaits)
	}
	w.Close()
	if n, err := in.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v at the end", n, err)
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if info, err = zero.Stat(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, unwaiting(zero, info)); n > 2*maxSystemFile || !errors.Is(err, errEndless) {
		t.Errorf("read %d of what has no end, %v", n, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	d := newDesk(t)
	for _, file := range []string{"/proc/kmsg", "/proc/self/mem", "/proc/self/mounts", "/proc/self/pagemap", "/proc/self/fd/0"} {
		d.read(file) // whatever it says, it returns
		d.write(file, "x")
		d.edit(file, "a", "b")
		searchCall(t, &Grep{}, d.dir, map[string]any{"pattern": "needle", "path": file})
	}
	if text := d.must(d.read("/proc/self/mounts")); !strings.Contains(text, "proc") {
		t.Errorf("/proc/self/mounts shown as %.200q", text)
	}
}

// Calls that name one file in any way are of one lane.
func TestLanesNameTheFile(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	if err := os.Symlink("a.txt", filepath.Join(d.dir, "link")); err != nil {
		t.Fatal(err)
	}
	lane := func(tool troupe.Ordered, file string) string {
		raw, _ := json.Marshal(args{"file_path": file, "content": "", "old_string": "a", "new_string": "b"})
		return tool.Lane(&troupe.Call{ToolUse: troupe.ToolUse{Input: raw}, Place: troupe.Place{Dir: d.dir}})
	}
	want := "file:" + filepath.Join(d.dir, "a.txt")
	for _, tool := range []troupe.Ordered{Read{Files: d.files}, Write{Files: d.files}, Edit{Files: d.files}} {
		for _, file := range []string{"a.txt", "./x/../a.txt", "link", filepath.Join(d.dir, "a.txt")} {
			if got := lane(tool, file); got != want {
				t.Errorf("%T %s: lane %q, want %q", tool, file, got, want)
			}
		}
		if got := lane(tool, "new/b.txt"); got != "file:"+filepath.Join(d.dir, "new/b.txt") {
			t.Errorf("%T: lane of a new file %q", tool, got)
		}
		if got := lane(tool, ""); got != "" {
			t.Errorf("%T: lane of no file %q", tool, got)
		}
	}
}

// privateModes says that the modes of files keep others out.
const privateModes = true

// A directory that others may enter is closed to them, a link in its place is
// not followed, and a file that is there already is not written.
func TestCapDistrustsTheDirectory(t *testing.T) {
	long := troupe.Answer(strings.Repeat("x", 5000))
	root := t.TempDir()
	open := filepath.Join(root, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(root, "victim")
	if err := os.WriteFile(victim, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(open, "a-1.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Cap(canned{long, nil}, open, 1000).Call(t.Context(), capCall("a", "1")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "safe" {
		t.Errorf("victim has %q (%v)", b, err)
	}

	elsewhere, link := filepath.Join(root, "elsewhere"), filepath.Join(root, "link")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	res, err := Cap(canned{long, nil}, link, 1000).Call(t.Context(), capCall("a", "1"))
	if err != nil || !strings.Contains(res.Content.Text(), "could not be kept") {
		t.Errorf("got %.300q (%v)", res.Content.Text(), err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 0 {
		t.Errorf("written through a link: %v (%v)", entries, err)
	}
}
