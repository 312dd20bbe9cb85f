// Package troupetest helps to test code that is built on package troupe.
//
// [NewProvider] starts a model service on the loopback interface. It speaks
// the Anthropic Messages and the OpenAI Chat Completions dialects, refuses
// what the real services refuse, keeps every request, counts tokens and fails
// on demand in all the ways in which a service and a network fail:
//
//	p := troupetest.NewProvider(t)
//	p.Queue(
//		troupetest.Reply{Message: troupetest.Use(troupe.ToolUse{ID: "c1", Name: "Read", Input: input})},
//		troupetest.Reply{Message: troupetest.Say("done")},
//	)
//	// … run an agent against p.URL() or p.URL()+"/v1" …
//	fmt.Println(p.Last().Results())
//
// [Replies] is the same in memory, for tests of the loop that need no wire.
// [TestModel] checks that a model keeps the contract of [troupe.Model].
//
// [NewForge] is a service with pull requests.
//
// It is the only package outside test files that imports package testing.
package troupetest
