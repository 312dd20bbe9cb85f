package delegate

// Prompts that were written before the check was. Of the ten good ones none was
// refused at first; of the bad ones all were, two of them for fewer reasons than
// there are. Those two have shown faults of a kind, which were mended.
var heldOut = []checkCase{
	{"good", `In internal/cli/tally.go, Tally.Add counts a cached token twice when a reply is retried (lines 88-104). Count only the last attempt. Add a case to TestTally. Finished when go test ./internal/cli is green. Report the commit and the output of the test.`, nil},
	{"good", `Read-only: how does the scheduler in pkg/queue decide which job goes next? Trace it from Enqueue to the worker. I need the functions with path and line, in order of the calls, and any lock that is held meanwhile.`, nil},
	{"good", "Remove the deprecated flag --legacy-output: cmd/app/flags.go (definition), cmd/app/run.go:51 (use), docs/cli.md (two mentions). Nothing else reads it. `grep -rn legacy-output .` must print nothing afterwards, and `make check` must pass. Commit; hand back the hash.", nil},
	{"good", `Which of our HTTP handlers do not check the Content-Length header? Give a table: handler, file, line.`, nil},
	{"good", "Ersetze in `server/tls.go` die feste Liste der Chiffren durch die Vorgabe von Go (Feld CipherSuites weglassen). Fertig, wenn `go test ./server` durchläuft. Melde den Commit.", nil},
	{"good", "在 src/cache/lru.ts 中，evict() 在容量为 0 时会死循环。容量为 0 时应直接返回。运行 `npm test -- lru`，并报告提交的哈希。", nil},
	{"good", `Verify branch fix-torn-log. The task was: session.Load must accept a log whose last line is cut off and drop that line only. Changed: session/load.go, session/load_test.go. Run the tests, then cut a log at every byte by a script and load it. Verdict with commands and output.`, nil},
	{"good", `Upgrade golang.org/x/net to v0.38.0 in go.mod and run go mod tidy. No code changes should be necessary; if one is, stop and tell me which. Done when go build ./... and go test ./tool succeed. Return the diff of go.mod and go.sum.`, nil},
	{"good", "Explore the billing service under services/billing: where are invoices numbered, and can two requests get the same number? Answer yes or no first, then the evidence as path:line.", nil},
	{"good", "Le test `TestParallelClose` de `pool/pool_test.go` échoue une fois sur vingt. Trouve la cause, sans rien modifier, et donne le fichier et la ligne.", nil},

	{"bad", `The research worker has found the cause. Please implement its recommendation and make sure nothing breaks.`, []string{NoPlace, NoDoneWhen, HandedAway}},
	{"bad", `Look into the flaky tests and do whatever is necessary to get them stable again.`, []string{NoPlace, HandedAway}},
	{"bad", `Now that you have understood the problem, please go ahead and fix it in store/dir.go.`, []string{NoDoneWhen}},
	{"bad", `Add support for YAML to the configuration loader.`, []string{NoDeliverable, NoDoneWhen}},
	{"bad", `Investigate performance.`, []string{NoPlace, NoDeliverable}},
	{"bad", "Files: all of them.\nDeliverable: good code.\nDone when: it is done.\nPlease refactor the project.", []string{NoDoneWhen}},
	{"bad", `Continue the work that we discussed on the parser; you know the details. Report back when finished.`, []string{NoDoneWhen, HandedAway}},
	{"bad", `In api/handler.go handle the error cases the way you think is best.`, []string{NoDoneWhen, HandedAway}},
	{"bad", "Behebe den Fehler, den der andere Agent gefunden hat.", []string{NoPlace}},
	{"bad", `Write tests for everything that is not covered yet and use your judgement about what matters.`, []string{NoPlace, HandedAway}},
}
