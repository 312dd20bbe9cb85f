package delegate

import (
	"strings"
	"testing"
)

// test is a command of the tests, out what it printed.
const test, out = "go test ./...", "?   \ta/cmd\t[no test files]\nok  \ta/store\t0.412s\n"

// commandsRun are what the agents of the tests have run.
func commandsRun() []Command {
	return []Command{
		{Text: " ", Output: "ok a/store 0.412s\n"},
		{Text: "ls", Output: "a.go\nb.go\n"},
		{Text: "tox", Output: "10 % of the work\r100 % of the work\nAll tests passed.\n"},
		{Text: test, Output: out},
		{Text: "go  vet \\\n  ./...", Output: ""},
		{Text: "make check", Output: "lint: 3 problems\nmake: *** [check] Error 1\n", Failed: true},
		{Text: "./selftest", Output: "PASS\n"},
		{Text: "npm test", Output: "\x1b[32m✓\x1b[0m größe ist 日本語 (3 ms)\r\n\n12 passing\n"},
		{Text: "flaky", Output: "round one went well\n"},
		{Text: "flaky", Output: "round two broke down\n", Failed: true},
		{Text: "late", Output: "no server is there\n", Failed: true},
		{Text: "late", Output: "server answers now\n"},
		{Text: "echo ok store 0.4s", Output: "ok store 0.4s\n"},
		{Text: "go test ./x || true", Output: "FAIL a/x with three faults\n"},
		{Text: "quiet", Output: "", Failed: true},
		{Text: "pytest -q", Output: "....\n12 passed in 0.31s\n"},
		{Text: "cat <<'E'\nVerdict: FAIL\nE", Output: "Verdict: FAIL\n"},
	}
}

// oneProof is a verdict with one command.
func oneProof(verdict, command, output string) string {
	return "Verdict: " + verdict + "\nCommand: " + command + "\nOutput: " + output + "\n"
}

func TestProven(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"as it is":                   {oneProof("PASS", test, "ok  \ta/store\t0.412s"), ""},
		"white space":                {oneProof("PASS", "go  test   ./...", "ok a/store 0.412s"), ""},
		"backticks and a block":      {"I looked at it.\n\n**Command:** `go test ./...`\n**Output:**\n```\n?    a/cmd [no test files]\nok   a/store 0.412s\n```\n\nAll is well.\n\n**Verdict: PASS**", ""},
		"a prompt and an ellipsis":   {oneProof("pass", "$ go test ./...", "\n…\nok  a/store…"), ""},
		"block behind the label":     {"Verdict: FAIL\nCommand:\n```sh\nmake check\n```\nOutput: ```\nlint: 3 problems\n(exit code 2)\n```", ""},
		"continued command":          {"VERDICT: PASS\nCommand: go vet \\\n./...\nOutput: (no output)\n", ""},
		"nothing was printed":        {oneProof("PASS", `go vet \ ./...`, "none, exit code 0"), ""},
		"only PASS was printed":      {oneProof("PASS", "./selftest", "PASS"), ""},
		"unicode and colours":        {oneProof("PASS", "npm test", "✓ größe ist 日本語 (3 ms)\n12 passing"), ""},
		"a failure is seen":          {oneProof("FAIL", "make check", "lint: 3 problems"), ""},
		"in part":                    {oneProof("PARTIAL", "make check", "lint: 3 problems"), ""},
		"failed first":               {oneProof("PASS", "late", "server answers now"), ""},
		"two, one shows a failure":   {oneProof("PASS", "make check", "lint: 3 problems") + "\n" + oneProof("PASS", test, "ok a/store 0.412s"), ""},
		"a verdict in what is shown": {"Command:\n```\ncat <<'E'\nVerdict: FAIL\nE\n```\nOutput:\n```\nVerdict: FAIL\n```\nCommand: " + test + "\nOutput: ok a/store 0.412s\n\nVerdict: PASS", ""},
		"a progress bar":             {oneProof("PASS", "tox", "100 % of the work"), ""},
		"an example":                 {"The form is\n```\nVerdict: FAIL\n```\n" + oneProof("PASS", test, "ok a/store 0.412s"), ""},

		"nothing":                     {"", "no line"},
		"only that tests passed":      {oneProof("PASS", "tox", "All tests passed."), "tells something"},
		"two outputs":                 {oneProof("PASS", test, "ok a/host 0.2s") + "Output: ok a/store 0.412s", "did not print"},
		"no verdict":                  {"It works.", "no line"},
		"a word for a verdict":        {"Verdict: fine", "no line"},
		"no command":                  {"Verdict: PASS\nI read the code with care.", "names no command"},
		"no output":                   {"Verdict: PASS\nCommand: go test ./...", "not shown"},
		"an output without a command": {"Verdict: PASS\nOutput: ok a/store 0.412s", "names no command"},
		"empty command":               {oneProof("PASS", "", "ok a/store 0.412s"), "was not run"},
		"forged command":              {oneProof("PASS", "go test -race ./...", "ok  \ta/store\t0.412s"), "was not run"},
		"longer command":              {oneProof("PASS", "go test ./... -v", "ok a/store 0.412s"), "was not run"},
		"a part of a command":         {oneProof("PASS", "go test", "ok a/store 0.412s"), "was not run"},
		"forged output":               {oneProof("PASS", test, "ok  \ta/store\t0.100s"), "did not print"},
		"output of another":           {oneProof("PASS", test, "12 passed in 0.31s"), "did not print"},
		"one line of it is forged":    {oneProof("PASS", test, "ok  \ta/store\t0.412s\nok  \ta/host\t0.2s"), "did not print"},
		"only ok":                     {oneProof("PASS", test, "ok"), "did not print"},
		"only PASS":                   {oneProof("PASS", "pytest -q", "PASS"), "did not print"},
		"dots":                        {oneProof("PASS", "pytest -q", "...."), "tells something"},
		"only a remark":               {oneProof("PASS", test, "(all tests passed)"), "tells something"},
		"only an ellipsis":            {oneProof("PASS", test, "…"), "tells something"},
		"a letter and an ellipsis":    {oneProof("PASS", test, "…s…"), "tells something"},
		"said to be empty":            {oneProof("PASS", test, "no output"), "and it did"},
		"empty and not said":          {oneProof("PASS", `go vet \ ./...`, "ok"), "does not say so"},
		"empty and made up":           {oneProof("PASS", `go vet \ ./...`, "no output: vet found nothing wrong in 12 packages"), "does not say so"},
		"failed":                      {oneProof("PASS", "make check", "lint: 3 problems"), "failed"},
		"failed quietly":              {oneProof("PASS", "quiet", "no output"), "failed"},
		"failed at last":              {oneProof("PASS", "flaky", "round one went well"), "did not print"},
		"failed at last, shown":       {oneProof("PASS", "flaky", "round two broke down"), "failed"},
		"echo":                        {oneProof("PASS", "echo ok store 0.4s", "ok store 0.4s"), "cannot fail"},
		"a swallowed failure":         {oneProof("PASS", "go test ./x || true", "FAIL a/x with three faults"), "cannot fail"},
		"one is true, one is not":     {oneProof("PASS", test, "ok a/store 0.412s") + oneProof("PASS", "go test -race", "ok a/store 0.412s"), "was not run"},
		"two verdicts":                {oneProof("PASS", test, "ok a/store 0.412s") + "Verdict: FAIL", "more than one"},
		"another's letters":           {oneProof("PASS", "gо test ./...", "ok a/store 0.412s"), "was not run"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, why := Proven(c.text, commandsRun())
			if ok != (c.why == "") || !strings.Contains(why, c.why) || strings.Contains(why, "\n") {
				t.Errorf("%v, %q", ok, why)
			}
		})
	}
}

// Output may be as large as a disk lets it be; a verdict, too.
func TestProvenOfHugeOutput(t *testing.T) {
	line := "the same line again and again "
	ran := []Command{{Text: "make", Output: strings.Repeat(line+"\n", 200_000) + "and the last one is here\n"}}
	if ok, why := Proven("Verdict: PASS\nCommand: make\nOutput:\n"+line+"\n…\nand the last one is here", ran); !ok {
		t.Error(why)
	}
	if ok, _ := Proven("Verdict: PASS\nCommand: make\nOutput:\n"+strings.Repeat("…same line agein…\n", 100_000), ran); ok {
		t.Error("a line that was not printed is taken")
	}
	if ok, why := Proven("Verdict: PASS\nCommand: make\nOutput:\n"+strings.Repeat("…same line again…\n", 100_000), ran); ok {
		t.Error(why)
	}
	if ok, why := Proven(strings.Repeat("Command: make\nOutput: ```\n", 20_000), ran); ok {
		t.Error(why)
	}
}
