// Package script is a model that plays a file: a list of rules, each of which
// says when it applies to a conversation and what it answers. The first rule
// that applies answers.
//
// It stands wherever a provider's model stands, so the tests of the project
// and its demonstration run the real loop, the real tools and the real retry
// logic without a network. It never passes for more than it is: its name
// begins with "script/", each reply carries that name, and a conversation that
// no rule foresees is an error, not an answer.
//
// An answer depends on the request alone. There is no counter that several
// agents could share: what a rule did earlier in a conversation is worked out
// from that conversation. So one [Model] serves any number of agents at once,
// a resumed conversation goes on where it stopped, and the same request gets
// the same reply.
//
// The file format is described in doc/script.md.
package script
