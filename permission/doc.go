// Package permission decides whether a tool call may run.
//
// A [Policy] is a [Mode], the general attitude of the user, and [Rule]s that
// deny, ask or allow single calls. [Policy.Decide] goes through them in that
// order: a deny rule holds in every mode, an ask rule beats an allow rule, and
// the mode has the last word on what no rule speaks of. The decision is a
// function of the policy and the call; all it looks at besides is where the
// links of a path lead and which files a glob stands for. [Gate] is the
// [troupe.Guard] made of a policy.
//
// Files are judged by two paths, the one that was named and the one it leads
// to: an allow must cover both, a deny needs to cover one.
//
// A command line of a shell is parsed, never compared as text: it is taken
// apart into its simple commands, whichever way they are nested, and runs only
// if each of them may run (shell.go takes it apart, command.go judges). What
// cannot be known before it runs is not allowed by a rule for something
// narrower. The check is careful, but it is no sandbox: a program that a user
// allows can do what that program can do.
package permission
