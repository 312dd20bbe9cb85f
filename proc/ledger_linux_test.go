package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// owner starts a process that runs script in a group noted in ledger, and
// returns it and the first n lines of the script's output.
func owner(t *testing.T, ledger, script string, n int) (*exec.Cmd, []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := newScreen()
	cmd := exec.Command(self)
	cmd.Env = append(env(), roleVar+"=owner", "PROC_TEST_SCRIPT="+script, "PROC_TEST_LEDGER="+ledger)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Millisecond // what the owner leaves holds the pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out.lines(t, n)
}

func notes(t *testing.T, ledger string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(ledger, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSweepAfterACrash(t *testing.T) {
	const script = `sleep 1000 & echo $!
setsid sh -c 'echo $$; exec sleep 1000' &
(sh -c 'echo $$; exec sleep 1000' &)
wait`
	ledger := filepath.Join(t.TempDir(), "ledger")
	dead, orphans := owner(t, ledger, script, 3)
	_, others := owner(t, ledger, script, 3)
	if n := notes(t, ledger); len(n) != 2 {
		t.Fatalf("notes: %v", n)
	}
	st, err := os.Stat(notes(t, ledger)[0])
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("a note has mode %v, %v", st.Mode(), err)
	}
	if got, err := Sweep(context.Background(), ledger); err != nil || got.Groups+got.Ended+len(got.Kept) != 0 {
		t.Errorf("Sweep while all owners live = %+v, %v", got, err)
	}

	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait()
	for _, pid := range orphans {
		if !running(t, pid) {
			t.Fatalf("process %s did not survive its owner: this proves nothing", pid)
		}
	}
	got, err := Sweep(context.Background(), ledger)
	if err != nil || got.Groups != 1 || got.Ended < 4 || len(got.Kept) != 0 {
		t.Errorf("Sweep = %+v, %v", got, err)
	}
	for _, pid := range orphans {
		if running(t, pid) {
			t.Errorf("process %s of the dead owner runs", pid)
		}
	}
	for _, pid := range others {
		if !running(t, pid) {
			t.Errorf("process %s of the living owner was ended", pid)
		}
	}
	if n := notes(t, ledger); len(n) != 1 {
		t.Errorf("notes: %v", n)
	}
	sweepRest(t, ledger)
}

// sweepRest ends what the living owners of a test still run.
func sweepRest(t *testing.T, ledger string) {
	t.Helper()
	for _, path := range notes(t, ledger) {
		head, leader, err := readNote(path)
		if err != nil {
			t.Fatal(err)
		}
		g, err := left(leader, head.Mark)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.end(); err != nil {
			t.Fatal(err)
		}
	}
}

// A group whose programs have no mark is found by its leader.
func TestSweepFindsTheLeader(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	dead, pids := owner(t, ledger, `exec env -i /bin/sh -c 'sleep 1000 & echo $!; wait'`, 1)
	_ = dead.Process.Kill()
	_ = dead.Wait()
	got, err := Sweep(context.Background(), ledger)
	if err != nil || got.Groups != 1 || got.Ended != 2 || running(t, pids[0]) {
		t.Errorf("Sweep = %+v, %v; process %s runs: %v", got, err, pids[0], running(t, pids[0]))
	}
}

// A crash between the two lines of a note loses nobody.
func TestSweepByTheMarkAlone(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	dead, pids := owner(t, ledger, `sleep 1000 & echo $!; wait`, 1)
	_ = dead.Process.Kill()
	_ = dead.Wait()
	path := notes(t, ledger)[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	if err := os.WriteFile(path, []byte(first+"\n{\"lead"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Sweep(context.Background(), ledger)
	if err != nil || got.Groups != 1 || got.Ended != 2 || running(t, pids[0]) {
		t.Errorf("Sweep = %+v, %v", got, err)
	}
}

// S49: written notes name a process that has nothing to do with them: its number
// is that of one of ours, its start or its boot is not.
func TestSweepSparesOthers(t *testing.T) {
	foreign := exec.Command("setsid", "sleep", "1000")
	foreign.Env = env()
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Process.Kill(); _ = foreign.Wait() }()
	alive, err := Of(foreign.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	here, err := where()
	if err != nil {
		t.Fatal(err)
	}
	const mark = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	earlier, reboot := alive, alive
	earlier.Start -= 100
	reboot.Boot = "another"
	dead, rebooted := self, self
	dead.Start -= 1
	rebooted.Boot = "another"
	for name, tt := range map[string]struct {
		content string // "" is that of head and leader
		head    noteHead
		leader  Identity
		swept   bool
		kept    bool
	}{
		"pid with another start":         {head: noteHead{1, mark, dead, here}, leader: earlier, swept: true},
		"pid of another boot":            {head: noteHead{1, mark, dead, here}, leader: reboot, swept: true},
		"owner of another boot":          {head: noteHead{1, mark, rebooted, here}, leader: alive, swept: true},
		"owner lives":                    {head: noteHead{1, mark, self, here}, leader: alive},
		"other machine":                  {head: noteHead{1, mark, dead, "elsewhere"}, leader: alive},
		"newer version":                  {head: noteHead{2, mark, dead, here}, leader: alive, kept: true},
		"no mark":                        {head: noteHead{1, "", dead, here}, leader: alive, kept: true},
		"mark of another note":           {head: noteHead{1, mark + "2", dead, here}, leader: alive, kept: true},
		"no owner":                       {head: noteHead{1, mark, Identity{}, here}, leader: alive, kept: true},
		"not JSON":                       {content: "x", kept: true},
		"empty":                          {content: "\n", kept: true},
		"much too long":                  {content: strings.Repeat(" ", noteLimit+1), kept: true},
		"the first process, by its name": {head: noteHead{1, mark, dead, here}, leader: Identity{PID: 1, Boot: self.Boot}, swept: true},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := t.TempDir()
			path := filepath.Join(ledger, mark+".json")
			if tt.content == "" {
				head, _ := json.Marshal(tt.head)
				leader, _ := json.Marshal(noteLeader{tt.leader})
				tt.content = fmt.Sprintf("%s\n%s\n", head, leader)
			}
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(ledger, "other.txt")
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Sweep(context.Background(), ledger)
			if err != nil || (got.Groups == 1) != tt.swept || (len(got.Kept) == 1) != tt.kept || got.Ended != 0 {
				t.Errorf("Sweep = %+v, %v", got, err)
			}
			if _, err := os.Stat(path); (err == nil) == tt.swept {
				t.Errorf("the note: %v", err)
			}
			if _, err := os.Stat(other); err != nil {
				t.Error(err)
			}
			if !running(t, strconv.Itoa(alive.PID)) {
				t.Fatal("the process was ended")
			}
		})
	}
}

// A user may start the program again in a shell that a crash has orphaned.
func TestSweepKeepsItsOwnGroup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(t.TempDir(), "ledger")
	result := filepath.Join(t.TempDir(), "result")
	script := fmt.Sprintf(`echo; kill -9 $PPID; %s=sweeper PROC_TEST_RESULT='%s' '%s'; sleep 1000`, roleVar, result, self)
	dead, _ := owner(t, ledger, script, 1)
	_ = dead.Wait()
	var got []byte
	_, err = poll(nil, time.Minute, func() (bool, error) {
		got, err = os.ReadFile(result)
		return strings.HasSuffix(string(got), "\n"), nil
	})
	if err != nil || !strings.Contains(string(got), errInside.Error()) {
		t.Errorf("the sweeper in the group: %q, %v", got, err)
	}
	// The shell is there, the sleep only if it has been started by now.
	if swept, err := Sweep(context.Background(), ledger); err != nil || swept.Groups != 1 || swept.Ended < 1 {
		t.Errorf("Sweep from outside = %+v, %v", swept, err)
	}
}

// S124: what somebody else has put among the notes is not followed.
func TestSweepRefusesPlantedFiles(t *testing.T) {
	if got, err := Sweep(context.Background(), filepath.Join(t.TempDir(), "none")); err != nil || got.Groups != 0 {
		t.Errorf("Sweep of no directory = %+v, %v", got, err)
	}
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Sweep(context.Background(), link); err == nil {
		t.Error("Sweep followed a link")
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "A.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := Sweep(context.Background(), dir); err != nil || len(got.Kept) != 1 {
		t.Errorf("Sweep with a linked note = %+v, %v", got, err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Sweep(gone, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep with a context that has ended: %v", err)
	}
}

// S124: a directory for notes that others made, or can write, is not used.
func TestPrivateDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := PrivateDir(dir); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(dir)
		if err != nil || st.Mode().Perm() != 0o700 {
			t.Fatalf("%v, %v", st, err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, 12345, -1); err != nil {
		return // not as root: nobody can give a directory away
	}
	if err := PrivateDir(dir); err == nil {
		t.Error("a directory of another user was taken")
	}
}
