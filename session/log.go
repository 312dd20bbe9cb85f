package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// version is the schema version of a log, in its first record.
const version = 1

// A Log is the file of one agent. It is safe for concurrent use.
type Log struct {
	folder *Folder
	agent  string
	path   string
	f      *os.File
	size   int64
	torn   bool // the file ends within a line
	sent   sentFile
}

// line is the JSON form of a record.
type line struct {
	V     int `json:",omitempty"`
	Time  time.Time
	Event json.RawMessage
}

// Log opens or makes the log of an agent. A last line that a crash has torn is
// ended, so that it cannot damage the next record.
func (f *Folder) Log(agent string) (*Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.logs {
		if l.agent == agent {
			if l.f != nil {
				return l, nil
			}
			return l, l.open()
		}
	}
	l := &Log{folder: f, agent: agent, path: LogPath(f.Dir, agent)}
	l.sent.path = sentPath(l.path)
	if err := l.open(); err != nil {
		return nil, err
	}
	f.logs = append(f.logs, l)
	return l, nil
}

// Release closes the files of an agent that has ended: a session may have more
// agents than a process may have open files. Its records stay in view of those
// who follow, and Log opens it again.
func (f *Folder) Release(agent string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.logs {
		if l.agent == agent {
			return l.close()
		}
	}
	return nil
}

// open opens the file at its end. The caller holds the folder's lock.
func (l *Log) open() (err error) {
	if l.f, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return unwritten(err)
	}
	if l.size, err = l.f.Seek(0, io.SeekEnd); err != nil {
		return errors.Join(unwritten(err), l.f.Close())
	}
	if l.size == 0 {
		failpoint.Here(failpoint.LogMade)
	}
	if l.size > 0 {
		var last [1]byte
		if _, err := l.f.ReadAt(last[:], l.size-1); err != nil {
			return errors.Join(unwritten(err), l.f.Close())
		}
		l.torn = last[0] != '\n'
	}
	return nil
}

// close closes the files, if they are open. The caller holds the folder's lock.
func (l *Log) close() error {
	if l.f == nil {
		return nil
	}
	err := errors.Join(l.sent.close(), l.f.Sync(), l.f.Close())
	l.f = nil
	return err
}

// Append adds an event. It is in the kernel's hands when Append returns: the
// end of this process cannot lose it. Before a request goes out and at the end
// of a run all that led to it is synced, too, so that the end of the machine
// cannot lose it either. Fragments of a reply are not recorded.
func (l *Log) Append(ev troupe.Event) error {
	l.folder.mu.Lock()
	defer l.folder.mu.Unlock()
	if _, fragment := ev.(troupe.Streaming); fragment {
		return nil
	}
	if l.f == nil {
		return fmt.Errorf("%w: it is closed", ErrLog)
	}
	if sent, ok := ev.(troupe.Sent); ok {
		if err := l.f.Sync(); err != nil {
			return unwritten(err)
		}
		failpoint.Here(failpoint.LogSynced)
		if err := l.sent.add(l.folder.tick(), sent); err != nil {
			return unwritten(err)
		}
		failpoint.Here(failpoint.SentWritten)
		return nil
	}
	if err := l.write(ev); err != nil {
		return unwritten(err)
	}
	failpoint.Here(failpoint.LogAppended)
	l.folder.wake()
	if _, end := ev.(troupe.Ended); end {
		if err := l.f.Sync(); err != nil {
			return unwritten(err)
		}
		failpoint.Here(failpoint.LogEnding)
	}
	return nil
}

func (l *Log) write(ev troupe.Event) error {
	raw, err := troupe.EncodeEvent(ev)
	if err != nil {
		return err
	}
	rec := line{Time: l.folder.tick(), Event: raw}
	if l.size == 0 {
		rec.V = version
	}
	b, err := troupe.Encode(rec)
	if err != nil {
		return err
	}
	if l.torn {
		b = append([]byte{'\n'}, b...)
	}
	b = append(b, '\n')
	failpoint.Torn(failpoint.LogHalf, l.f, b)
	n, err := appendWhole(l.f, b)
	l.size += int64(n)
	l.torn = err != nil && (n > 0 || l.torn) // half a record must not be joined by the next
	return err
}

// unwritten is the error of a log that cannot be written.
func unwritten(err error) error {
	return fmt.Errorf("%w: %w", ErrLog, statefile.Explain(err))
}

// appendWhole writes b at the end of f, which nobody else writes, and returns
// how much of it is there. If there is no room for all of it, none of it stays,
// unless the system cannot take it back either.
func appendWhole(f *os.File, b []byte) (n int, err error) {
	n, err = f.Write(b)
	if err == nil || n == 0 {
		return n, err
	}
	if end, serr := f.Seek(0, io.SeekEnd); serr == nil && f.Truncate(end-int64(n)) == nil {
		n = 0
	}
	return n, err
}

// Record passes the events of a run through, each after it is in the log. If
// the log cannot be written the run ends.
func (l *Log) Record(run iter.Seq2[troupe.Event, error]) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		for ev, err := range run {
			if err == nil {
				if err := l.Append(ev); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// A Record is an event with its place in the log.
type Record struct {
	Agent string
	Line  int // from 1; 0 if it is not known
	Time  time.Time
	Event troupe.Event
}

// parse reads one line of a log.
func parse(b []byte) (Record, error) {
	l, err := parseLine(b)
	if err != nil {
		return Record{}, fmt.Errorf("broken record: %w", err)
	}
	if l.V > version {
		return Record{}, ErrNewer
	}
	ev, err := troupe.DecodeEvent(l.Event)
	if err != nil {
		return Record{}, fmt.Errorf("broken record: %w", err)
	}
	return Record{Time: l.Time, Event: ev}, nil
}

// parseLine takes a line apart. Of one that has the form in which we write it
// the event is not looked at: who decodes it does that.
func parseLine(b []byte) (l line, err error) {
	const field = `,"Event":`
	head, event, ok := bytes.Cut(bytes.TrimSpace(b), []byte(field))
	event, whole := bytes.CutSuffix(event, []byte("}"))
	if ok && whole && len(head) < longestHead && json.Unmarshal(append(head[:len(head):len(head)], '}'), &l) == nil {
		l.Event = event
		return l, nil
	}
	l = line{}
	err = json.Unmarshal(b, &l)
	return l, err
}

// longestHead is in bytes: what stands before the event is a version and a time.
const longestHead = 100

// Damage is a line of a log that cannot be read.
type Damage struct {
	Path string
	Line int
	Err  error
}

// Error names the file, the line and the reason.
func (d *Damage) Error() string { return fmt.Sprintf("%s:%d: %v", d.Path, d.Line, d.Err) }

// Unwrap returns the reason.
func (d *Damage) Unwrap() error { return d.Err }

// Load folds a log into the state of its agent. Lines that cannot be read are
// skipped and returned as damage; a log of a newer version is not read at all.
func Load(path string) (*troupe.State, []*Damage, error) {
	s, bad := new(troupe.State), []*Damage(nil)
	for r, err := range Read(path) {
		var d *Damage
		switch {
		case errors.Is(err, ErrNewer):
			return nil, nil, fmt.Errorf("%s: %w", path, ErrNewer)
		case errors.As(err, &d):
			bad = append(bad, d)
		case err != nil:
			return nil, nil, err
		default:
			s.Apply(r.Event)
		}
	}
	return s, bad, nil
}
