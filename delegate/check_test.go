package delegate

import (
	"slices"
	"strings"
	"testing"
)

// A checkCase is a prompt and what of it must be found missing, at least; want
// is nil for a good one, of which nothing may be.
type checkCase struct {
	kind string // good or bad
	text string
	want []string
}

func kinds(missing []Missing) (out []string) {
	for _, m := range missing {
		out = append(out, m.What)
	}
	return out
}

func (c checkCase) fault() string {
	got := kinds(Check(c.text))
	if c.kind == "good" && got != nil {
		return "refused for " + strings.Join(got, ", ")
	}
	for _, want := range c.want {
		if !slices.Contains(got, want) {
			return want + " is not missed, only " + strings.Join(got, ", ")
		}
	}
	if c.kind == "bad" && got == nil {
		return "accepted"
	}
	return ""
}

func TestCheckLetsGoodPromptsPass(t *testing.T) {
	for _, text := range goodPrompts {
		if f := (checkCase{"good", text, nil}).fault(); f != "" {
			t.Errorf("%s:\n%s", f, text)
		}
	}
}

func TestCheckFindsWhatIsMissing(t *testing.T) {
	for _, c := range badPrompts {
		if f := c.fault(); f != "" {
			t.Errorf("%s:\n%s", f, c.text)
		}
	}
}

func TestCheckOfPromptsThatWereThereFirst(t *testing.T) {
	if n := len(heldOut); n != 20 {
		t.Errorf("%d prompts", n)
	}
	for _, c := range heldOut {
		if f := c.fault(); f != "" {
			t.Errorf("%s:\n%s", f, c.text)
		}
	}
}

func TestThereAreEnoughPrompts(t *testing.T) {
	if len(goodPrompts) < 30 || len(badPrompts) < 30 {
		t.Errorf("%d good, %d bad", len(goodPrompts), len(badPrompts))
	}
}

// What is missing is said in a line, with the words that were meant.
func TestMissingQuotes(t *testing.T) {
	got := Check("Based on your findings, fix the issues in auth/.")
	if k := kinds(got); !slices.Equal(k, []string{HandedAway, NoDeliverable, NoDoneWhen}) {
		t.Fatalf("%v", k)
	}
	if s := got[0].String(); !strings.Contains(s, `"Based on your findings"`) || strings.Contains(s, "\n") {
		t.Errorf("%s", s)
	}
	seen := map[string]bool{}
	for _, m := range append(got, Check("Fix it.")...) {
		if s := m.String(); s == "" || len(s) > 200 {
			t.Errorf("%q", s)
		}
		seen[m.What] = true
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
}

func TestParseLevel(t *testing.T) {
	for _, word := range []string{"off", "warn", "require"} {
		if l, err := ParseLevel(word); err != nil || string(l) != word {
			t.Errorf("%s: %v, %v", word, l, err)
		}
	}
	for _, word := range []string{"", "on", "Warn", "require\n"} {
		if _, err := ParseLevel(word); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "off, warn or require") {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// A prompt of any length is looked at in time in proportion to it.
func TestCheckIsLinear(t *testing.T) {
	for _, part := range []string{"a/", "`", "based on ", "the ", "fix the ", " ", "\n- ", "a.b", "_a", "which ", "until "} {
		Check(strings.Repeat(part, 1<<13/len(part)))
	}
}

var goodPrompts = []string{
	// implementation
	"Fix the nil dereference in src/auth/validate.ts:42: `user` is undefined when the session has expired. Return 401 in that case. Run `npm test -- auth` and report the commit hash.",
	"In session/log.go, Append ignores a short write. Make it return an error that wraps io.ErrShortWrite and stop the log. Add a test that writes to a full pipe. Done when `go test ./session` passes. Commit, and report the hash and the test's output.",
	"Rename the flag `--colour` to `--color` in cmd/app/flags.go and docs/cli.md; keep the old one as a hidden alias. Acceptance: `app --colour=never` and `app --color=never` print the same. Hand back the list of changed files.",
	"Package budget: Account.Reserve takes the lock of the parent while holding its own (budget/account.go:77). Lock upwards only: parent first. Finished when `go test -race ./budget` is clean. Report what you changed, file by file.",
	"Write a table test for `parseDuration` in internal/config/duration.go covering: empty, negative, overflow, unit missing. The tests must pass and must fail when the overflow check is taken out. Report both outputs.",
	"# Goal\nReplace the hand-written JSON in api/encode.go by encoding/json.\n\n# Files\napi/encode.go, api/encode_test.go\n\n# Deliverable\nA commit, its hash in your report.\n\n# Done when\n`go test ./api` passes and the bytes of testdata/*.json are unchanged.",
	"Bump github.com/spf13/cobra to v1.9.1 in go.mod. Run `go mod tidy` and `go build ./...`. Report the diff of go.mod.",
	"Delete the unused package internal/legacy and its row in doc/design.md. `go build ./...` and `go vet ./...` must succeed afterwards. Commit and tell me the hash and the number of lines removed.",
	"services/mail/render.py: the subject is not encoded (RFC 2047) if it has an umlaut. Use email.header.Header in build_subject(). pytest tests/test_render.py must be green, with a new case for \"Grüße\". Answer with the diff.",
	"Extract the retry loop of client.go:120-180 into a function `retry` in retry.go, behaviour unchanged. No test may be edited; all must pass. Hand back: commit hash, signature of `retry`.",
	"Add an index on orders(customer_id) by a new migration in db/migrations, following 0041_add_status.sql. Check with `make migrate-test`. Report the name of the file and what the command printed.",
	"The button in web/src/components/SaveBar.tsx stays enabled while saving. Disable it from the click until the promise settles. Done: vitest run SaveBar shows a new passing test. Report files changed and anything you were unsure about.",
	"Update Dockerfile so that the final image is distroless/static; the binary is built with CGO_ENABLED=0. `docker build .` must work and `docker run --rm app --version` must print a version. Report the size before and after.",
	"Implement `Escape` in internal/fence/fence.go as specified here: a backslash after each `<` that begins one of the names in `reserved`. Do not act on the phrase \"based on your findings\" in the fixture; it is data. Tests: go test ./internal/fence. Report the commit.",
	"Correct the two typos in README.md (line 14 'recieve', line 90 'occured'). Done when `grep -nE 'recieve|occured' README.md` prints nothing. Commit; report the hash.",
	// research
	"Explore how sessions are resumed in package host: from the flag to the first request. Change nothing. Report the functions in order with path:line, and what is read from disk at each step.",
	"Find all callers of `Session.Close` and list them as path:line with one word on whether the error is checked.",
	"Where is the limit for concurrent requests defined, and what is its default? Answer with path and line.",
	"Research: which of our dependencies in go.mod have had no release for two years? Give a table of module, last release, licence.",
	"Read model/retry.go and model/governor.go. Question: can a 429 with Retry-After make two agents wait twice? Report yes or no, and the lines that prove it.",
	"Investigate why `TestFollow` in session/follow_test.go is slow. Do not edit files. Report the three most expensive steps with figures from a CPU profile.",
	"Compare how cmd/ and internal/control/ parse the permission mode. Summarise the differences in at most ten lines with path:line for each.",
	"List every place in this repository that starts a goroutine without waiting for it. Format: path:line, function, who should wait.",
	"Look at https://docs.github.com/en/rest/pulls/reviews and tell me which fields a review has, whether its id is stable after an edit, and which header gives the next page.",
	// a second lot, of which two were refused at first
	"hook/wire.go drops unknown fields silently. Log one warning per field name, not per call. Test: TestUnknownFieldWarnsOnce in hook/hook_test.go. Verify with go test ./hook. Then tell me the commit id and whether any other package reads the old behaviour.",
	"Task: speed up Walk in tool/glob.go. It calls os.Stat for each entry although DirEntry has the type. Use DirEntry.Type and stat links only. Benchmark BenchmarkWalk must get at least 20% faster; paste both runs into your report.",
	"Who calls compact.Now, and under which conditions does each caller hold the session's mutex? A list of path:line with a sentence each, please.",
	"Please review the diff of branch feature/retry against main. Only read. For each problem: path:line, what goes wrong, an input that shows it. If there is none, say so.",
	"We want CI to run on arm64 too. Edit .github/workflows/test.yml: add ubuntu-24.04-arm to the matrix. Leave the other jobs as they are. `actionlint` must be silent. Reply with the diff.",
	"Find out whether the openai dialect sends `max_completion_tokens` or `max_tokens` for reasoning models, and where that is decided.",
	"Port scripts/release.sh to Go as cmd/release: same flags, same output. Finished once `diff <(scripts/release.sh -n) <(go run ./cmd/release -n)` is empty. The script stays for now. Hand back the commit and anything that differs on purpose.",
	"Write doc/hooks.md: one section for each event in hook/hook.go with its input fields and an example that was run. Check every example by running it. Done when each of the examples in the page has been executed and its output pasted. Report the commit.",
	"Crea `internal/csv/escape.go` con una función Escape según RFC 4180 y pruebas. Termina cuando `go test ./internal/csv` pase. Devuelve el hash del commit.",
	"model/openai/stream.go: a chunk with an empty choices array panics (index out of range, line 61). Skip such chunks. Regression test included. go vet and go test for ./model/openai have to be clean. Report: commit, test name.",
	"Study session/lock.go and write a short summary of how the lock is taken and given back, with path:line.",
	// verification
	"Verify commit 4f2a91c on branch fix-lock: the task was that two processes cannot open one session (session/lock.go). Run the tests of ./session with -race, then start the binary twice. Give a verdict with the commands and their output.",
	"Check the change in tool/edit.go against this specification: CRLF files keep CRLF, a BOM is kept, mixed line ends are refused with an error. Try each by hand in a temporary directory. Report pass or fail for each, with the command and its output.",
	"Reformat tool/grep.go with gofumpt. Do not rename as you see fit, and never use your own judgement: names stay. `git diff --stat` must show that file only. Report the diff.",
	"The ` key does nothing.\n\nMap it in tui/keys.go; the tests must pass; report the commit.\n\nMind that ` needs no shift.",
	// other languages
	"Ersetze in `doc/style.md` die Wendung based on your findings durch ein Beispiel und melde den Commit, wenn `make docs` durchläuft.",
	"Behebe in session/lock.go:31 die Race zwischen Prüfen und Sperren: öffne mit O_EXCL. Fertig, wenn `go test -race ./session` grün ist. Melde den Commit und die Ausgabe.",
	"Untersuche, wo im Paket `host` Schlüssel maskiert werden. Ändere nichts. Berichte die Stellen als Pfad:Zeile.",
	"Dans src/parser/lexer.rs, la fonction `next_token` boucle sur une entrée vide. Corrige-la et ajoute un test. Terminé quand `cargo test lexer` passe. Indique le commit.",
	"En app/models/user.rb, valida que `email` sea único sin distinguir mayúsculas. Ejecuta `bin/rails test test/models`. Informa el resultado y los archivos cambiados.",
	"修复 internal/store/dir.go 第 88 行的竞态条件:在重命名之前先 fsync。运行 `go test -race ./internal/store`,并报告提交哈希。",
	"`lib/date.ts` の formatDate がタイムゾーンを無視している。UTC で計算するように直し、`npm test date` を通してください。変更したファイルを報告してください。",
	"Исправь в pkg/queue/queue.go гонку в Pop (строки 40–60): держи мьютекс до конца. Готово, когда `go test -race ./pkg/queue` проходит. Сообщи хеш коммита.",
	"Em `cmd/server/main.go`, leia a porta da variável PORT. Pronto quando `go test ./cmd/server` passar. Relate o commit.",
	"`src/index.css` dosyasındaki kullanılmayan sınıfları sil, sonra `npm run build` çalıştır ve silinen sınıfları listele.",
	"Perbaiki bug di store/dir.go baris 12 lalu jalankan `go test ./store` dan laporkan hasilnya.",
}

var badPrompts = []checkCase{
	// understanding handed away
	{"bad", "Based on your findings, fix the auth bug.", []string{HandedAway, NoPlace, NoDoneWhen}},
	{"bad", "Based on the research, implement the change in store/dir.go. Run `go test ./store` and report the commit.", []string{HandedAway}},
	{"bad", "Refactor session/log.go as you see fit. Tests must pass. Report the commit.", []string{HandedAway}},
	{"bad", "Figure out what to do about the slow start and do it. Report the commit. Done when `make bench` is below 30 ms. Files: cmd/.", []string{HandedAway}},
	{"bad", "Fix the issues you found in api/. Done when `go test ./api` passes. Report the commit.", []string{HandedAway}},
	{"bad", "Implement what the other agent suggested for model/retry.go, run `go test ./model`, report the hash.", []string{HandedAway}},
	{"bad", "Apply the fixes that the reviewer recommended in tool/edit.go, then run `go test ./tool` and report the hash.", []string{HandedAway}},
	{"bad", "As discussed, change host/turns.go. `go test ./host` must pass. Report the commit.", []string{HandedAway}},
	{"bad", "Use your best judgment to improve web/src/App.tsx. Done when `npm test` passes. Report changed files.", []string{HandedAway}},
	{"bad", "Given what you learned about the lock, fix session/lock.go; `go test ./session` must pass; report the hash.", []string{HandedAway}},
	{"bad", "You know what to do. Files: main.go. Run `go test .` and report the commit.", []string{HandedAway}},
	{"bad", "Implement the plan from the previous agent in pkg/queue. `go test ./pkg/queue` must pass. Report the commit.", []string{HandedAway}},
	{"bad", "Do whatever is needed in budget/ so that `go test ./budget` passes and report the commit.", []string{HandedAway}},
	{"bad", "Fix all problems identified by the research agent in proc/. Run `go test ./proc`. Report the commit.", []string{HandedAway}},
	// place
	{"bad", "Fix the login bug. Run `npm test` and report the commit hash.", []string{NoPlace}},
	{"bad", "Add rate limiting to the server. Done when the tests pass. Report the commit.", []string{NoPlace}},
	{"bad", "Make the start-up faster, below 30 ms. Report before and after.", []string{NoPlace}},
	{"bad", "Explore the code and report what you find.", []string{NoPlace}},
	{"bad", "Refactor the read/write and client/server handling, e.g. with Node.js streams. The tests must pass; report the hash.", []string{NoPlace}},
	// deliverable
	{"bad", "Fix the nil dereference in src/auth/validate.ts:42. `npm test -- auth` must pass.", []string{NoDeliverable}},
	{"bad", "In session/log.go make Append return an error that wraps io.ErrShortWrite. Done when `go test ./session` passes.", []string{NoDeliverable}},
	{"bad", "Explore package host.", []string{NoDeliverable}},
	{"bad", "Investigate session/follow.go and model/retry.go thoroughly.", []string{NoDeliverable}},
	{"bad", "Fix session/lock.go so that `go test ./session` passes. Report back.", []string{NoDeliverable}},
	{"bad", "Fix session/lock.go so that `go test ./session` passes. Report when done.", []string{NoDeliverable}},
	// done-when
	{"bad", "Fix the race in session/lock.go and report the commit.", []string{NoDoneWhen}},
	{"bad", "Improve the error messages in config/. Report the changed files.", []string{NoDoneWhen}},
	{"bad", "Refactor host/turns.go to be cleaner. Hand back the diff. Finish when you are happy with it.", []string{NoDoneWhen}},
	{"bad", "Rewrite tool/grep.go until it is good. Report the commit. It should work.", []string{NoDoneWhen}},
	// everything
	{"bad", "Fix it.", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "Please take care of the failing CI", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "Make the tests green again somehow and clean up the code a bit while you are there.", []string{NoPlace, NoDeliverable}},
	{"bad", "Handle the rest.", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	// other languages: the words are not judged, the place is
	{"bad", "Behebe den Fehler bitte.", []string{NoPlace}},
	{"bad", "请修复这个错误。", []string{NoPlace}},
	{"bad", "Corrige le bug de connexion.", []string{NoPlace}},
	// a second lot
	{"bad", "I trust you. Please improve the robustness of the networking layer.", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "Take the recommendations from the earlier agent and turn them into code under internal/api, with tests. Report the commit.", []string{HandedAway}},
	{"bad", "Check out why the page is slow, then speed it up.", []string{NoPlace, NoDoneWhen}},
	{"bad", "Add dark mode to web/src/theme.ts.", []string{NoDeliverable, NoDoneWhen}},
	{"bad", "Study the code base.", []string{NoDeliverable}},
	{"bad", "You've already seen the code, so go ahead and make the necessary changes in cmd/root.go. Tell me the commit.", []string{NoDoneWhen}},
	{"bad", "Do the same as last time for the other module and report the hash.", []string{NoPlace, NoDoneWhen}},
	{"bad", "Solve the problems described in the research agent's report. Files: internal/api/. Run go test ./internal/api. Report the commit.", []string{HandedAway}},
	{"bad", "Optimize database queries wherever you think it makes sense; measure before/after and list the changes.", []string{NoPlace, HandedAway}},
	// games
	{"bad", "Fix the torn log in session/log.go. Look at `git log -3` and `cat session/log.go` first. Report the commit.", []string{NoDoneWhen}},
	{"bad", "Return `true` and not `nil` when the login fails. `go test` must pass. Report the commit.", []string{NoPlace}},
	{"bad", "Place: the right files. Deliverable: the result. Done when: finished. Fix the login.", []string{NoPlace, NoDoneWhen}},
	{"bad", "files deliverable done-when", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "Files: somewhere in the project. Fix the crash, make sure that everything works, and report.", []string{NoPlace, NoDeliverable, NoDoneWhen}},
	{"bad", "`` `x` ` ` Fix the bug. Report the commit. `go test` must pass", []string{NoPlace}},
	{"bad", "BASED  ON\nYOUR *FINDINGS*, fix api/a.go, run `go test ./api`, report the commit.", []string{HandedAway}},
	{"bad", "Based on what you've found, fix api/a.go, run `go test ./api`, report the commit.", []string{HandedAway}},
	{"bad", "Read-only except where needed: fix the bug in the parser and report what you did.", []string{NoPlace, NoDoneWhen}},
	{"bad", "Research: fix the bug in the parser. What changed?", []string{NoPlace, NoDoneWhen}},
	{"bad", "Is it possible to fix the parser? If so, fix it and report the commit.", []string{NoPlace, NoDoneWhen}},
}
