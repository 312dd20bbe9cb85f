// Package task keeps what a session does in the background: one registry and
// one life cycle for every kind of work.
//
// A task is started with [Registry.Start], which writes it down before anything
// runs. It is pending until there is a place for its kind, running until its
// [Func] returns, and then completed, failed or killed; that is written down, too,
// and only then is its owner told, by the func that the registry was made with.
// So the end of the process at any moment loses no news of a task:
// [Registry.Restore] tells what was left untold.
//
// What an agent starts belongs to it. A task that belongs to an agent ends with
// that agent, and an agent that is stopped is gone, with all below it, when
// [Registry.Stop] returns.
//
// A task may be held in the foreground: its owner waits for it ([Registry.Wait])
// and gets its end by its own hand, so nothing is written down and nobody told.
// [Registry.Detach] lets go of it; from then on it is one like any other.
package task

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-sh/troupe"
)

var (
	// ErrStopped is the cause of the end of a task's context when somebody
	// stopped it.
	ErrStopped = errors.New("stopped")
	// ErrClosing is that cause when the session is being closed.
	ErrClosing = errors.New("stopped: the session was closed")
	// ErrClosed reports that the registry takes no new task.
	ErrClosed = errors.New("the session is being closed, nothing new is started")
	// ErrRunning reports that there is a task with this ID that has not ended.
	ErrRunning = errors.New("the task runs already")
	// ErrUnknown reports that there is no task with this ID.
	ErrUnknown = errors.New("no such task")
	// ErrTotal reports that as many tasks of a kind were started as may be.
	ErrTotal = errors.New("limit of tasks in one run reached")
	// ErrQuiet is the cause of the end of a context of [Registry.While].
	ErrQuiet = errors.New("nothing is at work any more")
	// ErrDetached reports that a task in the foreground was moved to the
	// background while its owner waited.
	ErrDetached = errors.New("moved to the background")
)

// A Kind is a kind of work.
type Kind string

// The kinds.
const (
	Shell    Kind = "local_bash"
	Agent    Kind = "local_agent"
	Remote   Kind = "remote_agent"
	Teammate Kind = "in_process_teammate"
	Workflow Kind = "local_workflow"
	Monitor  Kind = "monitor_mcp"
	Dream    Kind = "dream"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Shell, Agent, Remote, Teammate, Workflow, Monitor, Dream} }

// Letter is what the IDs of a kind begin with; 0 if there is no such kind.
func (k Kind) Letter() byte {
	switch k {
	case Shell:
		return 'b'
	case Agent:
		return 'a'
	case Remote:
		return 'r'
	case Teammate:
		return 't'
	case Workflow:
		return 'w'
	case Monitor:
		return 'm'
	case Dream:
		return 'd'
	}
	return 0
}

// NewID returns the ID of a new task: its kind's letter and eight characters
// that nobody can guess.
func NewID(k Kind) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	id := []byte{k.Letter()}
	for len(id) < 9 {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		for _, c := range b {
			if int(c) < 256/len(digits)*len(digits) && len(id) < 9 {
				id = append(id, digits[int(c)%len(digits)])
			}
		}
	}
	return string(id)
}

// A Status is a stage of a task's life.
type Status string

// The stages. The last three are ends.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Killed    Status = "killed"
)

// Ended reports whether the stage is an end.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Killed }

// A Task is a task as it is at one moment. Its JSON form is the file
// tasks/ID.json of a session.
type Task struct {
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Title string `json:"description"`
	Name  string `json:"name,omitempty"`  // by which an agent can be spoken to
	Type  string `json:"type,omitempty"`  // of an agent: the name of its definition
	Owner string `json:"owner"`           // agent that is told of its end
	Call  string `json:"tool_use_id"`     // of the owner, that started it
	Depth int    `json:"depth,omitempty"` // of an agent: 1 is below the lead
	// Held says that the owner waits for it: it is in the foreground.
	Held   bool   `json:"-"`
	Status Status `json:"status"`
	// Turn counts from 1 how often the task was begun: one that has ended can be
	// taken up again. Each time has an end and a notice of its own.
	Turn    int       `json:"turn"`
	Waiting bool      `json:"-"` // it runs only to wait for what it has started itself
	Result  string    `json:"result,omitempty"`
	Reason  string    `json:"reason,omitempty"` // in words, if it did not complete
	Output  string    `json:"output_file,omitempty"`
	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	Progress
}

// Progress is what a task has done so far.
type Progress struct {
	Last  string       `json:"last,omitempty"` // tool that was called last
	Calls int          `json:"tool_uses"`
	Size  int          `json:"total_tokens"` // of the last request and its reply
	Usage troupe.Usage `json:"usage"`
}

// Notice is the ID of the mail by which the owner learns of the end.
// Later ends have greater ones, and the same end has the same one.
func (t Task) Notice() string { return fmt.Sprintf("%016x-%s-%d", t.Ended.UnixNano(), t.ID, t.Turn) }

// Took is how long the task was at work, up to now if it has not ended.
func (t Task) Took(now time.Time) time.Duration {
	switch {
	case t.Started.IsZero():
		return 0
	case t.Ended.IsZero():
		return now.Sub(t.Started)
	}
	return t.Ended.Sub(t.Started)
}
