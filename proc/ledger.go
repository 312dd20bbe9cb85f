package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/troupe-sh/troupe/internal/statefile"
)

// The ledger is a directory with one file for each running group, MARK.json.
// Its first line says whose group it is and is on the disk before the program
// starts: from its first instruction on the program carries the mark, so
// there is no moment in which it runs and could not be found. The second line
// adds the leader's identity when it has one; it finds the group also where
// programs have emptied their environment. A second line that is missing or
// cut takes nothing away.
type (
	noteHead struct {
		Version int      `json:"version"`
		Mark    string   `json:"mark"`
		Owner   Identity `json:"owner"`
		Where   string   `json:"where"` // the machine or container of the pids
	}
	noteLeader struct {
		Leader Identity `json:"leader"`
	}
)

const (
	noteVersion = 1
	noteSuffix  = ".json"
	noteLimit   = 16 << 10 // bytes; a note has some 400
)

// errInside says that this process belongs to the group it looks at.
var errInside = errors.New("this process itself belongs to the group")

// A note is the file of a running group. A nil note is written nowhere.
type note struct {
	path string
	file *os.File
}

// newNote writes the note of a group that is about to start.
func newNote(dir, mark string) (*note, error) {
	if dir == "" {
		return nil, nil
	}
	if err := PrivateDir(dir); err != nil {
		return nil, fmt.Errorf("note the command: %w", statefile.Explain(err))
	}
	owner, err := Self()
	if err != nil {
		return nil, fmt.Errorf("note the command: %w", statefile.Explain(err))
	}
	space, err := where()
	if err != nil {
		return nil, fmt.Errorf("note the command: %w", statefile.Explain(err))
	}
	path := filepath.Join(dir, mark+noteSuffix)
	head, err := json.Marshal(noteHead{noteVersion, mark, owner, space})
	if err == nil {
		err = statefile.Replace(path, append(head, '\n'), 0o600, Owner()) // a note is there whole or not at all
	}
	if err != nil {
		return nil, fmt.Errorf("note the command: %w", statefile.Explain(err))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		_ = statefile.Remove(path) // the first error is the one to tell
		return nil, fmt.Errorf("note the command: %w", statefile.Explain(err))
	}
	return &note{path, file}, nil
}

// add writes who leads the group. If it cannot, the mark has to do: a full
// disk should not keep a user from the command that makes room.
func (n *note) add(leader Identity) {
	if n == nil {
		return
	}
	if data, err := json.Marshal(noteLeader{leader}); err == nil {
		_, _ = n.file.Write(append(data, '\n'))
	}
}

// remove removes the note. One that stays is removed by a sweep, which then
// finds nobody.
func (n *note) remove() {
	if n != nil {
		_ = n.file.Close()
		_ = statefile.Remove(n.path)
	}
}

// close leaves the note where it is.
func (n *note) close() {
	if n != nil {
		_ = n.file.Close()
	}
}

// Swept says what [Sweep] did.
type Swept struct {
	Groups int     // that had lost their owner, and are gone now
	Ended  int     // processes of theirs that were still running
	Kept   []error // one for each file that was left for a reason a user should know
}

// Sweep ends the groups noted in dir whose owner has died, and removes their
// notes. A group whose owner lives, or may live because it belongs to another
// machine or container, is left alone, and so is every process that merely
// has a pid that is noted. A dir that does not exist is empty.
//
// Several processes may sweep one directory at once. The error is about dir
// as a whole, or wraps the cause of ctx; the outcome tells what was done
// before.
func Sweep(ctx context.Context, dir string) (Swept, error) {
	var out Swept
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err := PrivateDir(dir); err != nil {
		return out, fmt.Errorf("sweep what a crash has left: %w", statefile.Explain(err))
	}
	Owner().Sweep(dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		return out, fmt.Errorf("sweep what a crash has left: %w", statefile.Explain(err))
	}
	for _, f := range files {
		if ctx.Err() != nil {
			return out, fmt.Errorf("sweep what a crash has left: %w", context.Cause(ctx))
		}
		if !strings.HasSuffix(f.Name(), noteSuffix) {
			continue
		}
		path := filepath.Join(dir, f.Name())
		ended, swept, err := sweepNote(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			out.Kept = append(out.Kept, fmt.Errorf("sweep %s: %w", path, err))
		}
		out.Ended += ended
		if swept {
			out.Groups++
		}
	}
	return out, nil
}

// sweepNote looks after the group of one note, and reports whether it was
// without an owner and is gone.
func sweepNote(path string) (ended int, swept bool, err error) {
	head, leader, err := readNote(path)
	if err != nil {
		return 0, false, err
	}
	space, err := where()
	if err != nil || space != head.Where {
		return 0, false, err
	}
	alive, err := Alive(head.Owner)
	if err != nil || alive {
		return 0, false, err
	}
	boot, err := bootID()
	if err != nil {
		return 0, false, err
	}
	if boot == head.Owner.Boot { // otherwise nothing of it is left to end
		if leader.Boot != boot {
			leader = Identity{}
		}
		g, err := left(leader, head.Mark)
		if err != nil {
			return 0, false, err
		}
		if ended, err = g.end(); err != nil {
			return ended, false, err
		}
	}
	if err := statefile.Remove(path); err != nil {
		return ended, false, err
	}
	return ended, true, nil
}

// readNote reads a note. It trusts no file that it would not have written.
func readNote(path string) (noteHead, Identity, error) {
	var head noteHead
	data, err := readOwn(path, noteLimit)
	if err != nil {
		return head, Identity{}, err
	}
	first, second, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(first, &head); err != nil {
		return head, Identity{}, fmt.Errorf("not a note of a command: %w", err)
	}
	if head.Version != noteVersion {
		return head, Identity{}, fmt.Errorf("the note has version %d, this program knows %d", head.Version, noteVersion)
	}
	if len(head.Mark) < 16 || filepath.Base(path) != head.Mark+noteSuffix || head.Owner.PID <= 0 {
		return head, Identity{}, errors.New("not a note of a command: mark or owner is missing")
	}
	var l noteLeader
	if json.Unmarshal(second, &l) != nil || l.Leader.PID <= 1 {
		l.Leader = Identity{}
	}
	return head, l.Leader, nil
}

// readUpTo reads all of r, which must not have more than limit bytes.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("longer than %d bytes", limit)
	}
	return data, err
}
