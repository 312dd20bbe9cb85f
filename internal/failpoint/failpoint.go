// Package failpoint names the steps at which the death of the process must do
// no harm, and lets a test kill it at each of them.
//
// The steps stand in the code as calls of [Here] and [Torn]. Both do nothing,
// and cost nothing, unless the program is built with the tag failpoint. Such a
// program kills itself, as by kill -9, at the step that was armed. They
// are in [Points]; the test of package main in cmd/troupe visits every one.
package failpoint

// A Point is a step.
type Point string

// The steps, in the order in which a session comes by them.
const (
	SessionMade    Point = "session.made"    // its directory is there, nothing in it
	SessionLocked  Point = "session.locked"  // its lock is taken
	SessionOwned   Point = "session.owned"   // it is said whose it is
	LogMade        Point = "log.made"        // the log of an agent is there, and empty
	InboxTaken     Point = "inbox.taken"     // prompts are on their way into the log
	LogHalf        Point = "log.half"        // half of a record is written
	LogAppended    Point = "log.appended"    // a record is in the log
	InboxAcked     Point = "inbox.acked"     // prompts are out of the inbox
	LogSynced      Point = "log.synced"      // the log is on the disk, before a request goes out
	SentHalf       Point = "sent.half"       // half of the body of a request is written
	SentWritten    Point = "sent.written"    // all of it is
	RequestSending Point = "request.sending" // it is about to go out
	RequestOpened  Point = "request.opened"  // the provider has begun to answer
	ReplyStreaming Point = "reply.streaming" // some of the reply is there
	StateTemporary Point = "state.temporary" // the new content of a file of ours stands beside the old
	ProcNoted      Point = "proc.noted"      // a program is in the ledger and does not run yet
	ProcStarted    Point = "proc.started"    // it runs, and the ledger does not know its number
	ProcRunning    Point = "proc.running"    // the ledger knows it
	ProcEnded      Point = "proc.ended"      // it is gone and still in the ledger
	FileTemporary  Point = "file.temporary"  // a file's new content stands beside it
	FileReplaced   Point = "file.replaced"   // a tool has changed a file and not said so
	ResultSaved    Point = "result.saved"    // a long result is kept and not in the log
	AgentBegun     Point = "agent.begun"     // the log of a sub-agent has its first records
	TaskBegun      Point = "task.begun"      // a task in the background is written down and does not run yet
	TaskEnded      Point = "task.ended"      // it has ended, and that is not written down
	TaskRecorded   Point = "task.recorded"   // it is, and its owner is not told
	TaskTold       Point = "task.told"       // the notice lies in the owner's box
	MailSent       Point = "mail.sent"       // a message lies in an agent's box
	CompactAsked   Point = "compact.asked"   // a summary was asked for and is there, the log knows nothing of it
	LogEnding      Point = "log.ending"      // the last record of a run is on the disk
	SessionClosing Point = "session.closing" // the logs are closed, the lock is held
)

// The steps of a store of files, which a session need not come by. The tests of
// package store visit them.
const (
	StoreWritten Point = "store.written" // a value is on the disk and has no name yet
	StoreLinked  Point = "store.linked"  // it has its name, which is not on the disk
	StoreTaken   Point = "store.taken"   // a lease is taken, and nobody can see it
)

// StorePoints are the steps of a store of files.
func StorePoints() []Point { return []Point{StoreWritten, StoreLinked, StoreTaken} }

// Points are the steps of a session.
func Points() []Point {
	return []Point{SessionMade, SessionLocked, SessionOwned, LogMade, InboxTaken, LogHalf, LogAppended, InboxAcked, LogSynced, SentHalf, SentWritten,
		RequestSending, RequestOpened, ReplyStreaming, StateTemporary, ProcNoted, ProcStarted, ProcRunning, ProcEnded, FileTemporary, FileReplaced, ResultSaved,
		AgentBegun, TaskBegun, TaskEnded, TaskRecorded, TaskTold, MailSent, CompactAsked, LogEnding, SessionClosing}
}
