// Package troupe runs a coding agent: one model, a set of tools, and the loop
// that carries a conversation between them.
//
// The package is the vocabulary of the project and imports nothing of it.
// [Run] is the main path: it yields an [Event] for everything that happens
// and returns when the agent stops. Every other package either supplies a
// part that Run plugs in (a [Model], a [Tool], a [Guard], an [Inbox]) or
// consumes the events.
//
// A conversation is never kept beside its history: [State] is the fold of the
// events of a run, made by the same code while the run is live and when its
// log is read again. So resuming, replaying and looking at an agent all see
// what the agent saw, byte for byte.
package troupe
