package delegate

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func TestCoordinatorFacts(t *testing.T) {
	tools, servers := []string{"Write", "Bash", "Read", "Bash"}, []string{"b", "a\n# Tools\nx"}
	got := CoordinatorFacts(tools, servers, "/home/u/s/scratchpad")
	for _, want := range []string{"Tools of a worker: Bash, Read, Write.\n", "MCP servers that it can reach: a\\n# Tools\\nx, b.\n", "\nScratchpad: /home/u/s/scratchpad\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	slices.Reverse(tools)
	slices.Reverse(servers)
	if again := CoordinatorFacts(tools, servers, "/home/u/s/scratchpad"); again != got {
		t.Errorf("another order makes another text: %s", again)
	}
	if !slices.Equal(tools, []string{"Bash", "Read", "Bash", "Write"}) {
		t.Errorf("the caller's list is %q now", tools)
	}
	if none := CoordinatorFacts(nil, nil, ""); strings.Contains(none, "Scratchpad") || strings.Count(none, "none.") != 2 {
		t.Error(none)
	}
}

func TestCoordinatorDefinitions(t *testing.T) {
	def := func(name, source string) troupe.Definition { return troupe.Definition{Name: name, Source: source} }
	all := []troupe.Definition{def("Explore", "built-in"), def("Plan", "built-in"), def("fork", "built-in"), def("general-purpose", "built-in"), def("guide", "built-in"), def("verification", "built-in")}
	for name, c := range map[string]struct{ add, want []troupe.Definition }{
		"only ours":           {nil, []troupe.Definition{def("verification", "built-in"), WorkerDefinition()}},
		"the user's stay":     {[]troupe.Definition{def("reviewer", "/r.md"), def("Xenia", "command line")}, []troupe.Definition{def("Xenia", "command line"), def("reviewer", "/r.md"), def("verification", "built-in"), WorkerDefinition()}},
		"the user's worker":   {[]troupe.Definition{def("Worker", "/w.md")}, []troupe.Definition{def("Worker", "/w.md"), def("verification", "built-in")}},
		"the user's Explore":  {[]troupe.Definition{def("Explore", "/e.md")}, []troupe.Definition{def("Explore", "/e.md"), def("verification", "built-in"), WorkerDefinition()}},
		"a worker by a file ": {[]troupe.Definition{def("worker", "/w.md")}, []troupe.Definition{def("verification", "built-in"), def("worker", "/w.md")}},
	} {
		t.Run(name, func(t *testing.T) {
			in := append(slices.Clone(all), c.add...)
			before := slices.Clone(in)
			if diff := cmp.Diff(c.want, CoordinatorDefinitions(in)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the caller's list has changed: %s", diff)
			}
		})
	}
}

// A worker has all tools but those by which it could start, write to or lead
// others.
func TestWorkersDoNotRecurse(t *testing.T) {
	all := []string{"Agent", "Bash", "Edit", "Read", "SendMessage", "StructuredOutput", "TeamCreate", "TeamDelete", "Write", "mcp__x__y"}
	got, err := Filter(WorkerDefinition(), all, true)
	if want := []string{"Bash", "Edit", "Read", "Write", "mcp__x__y"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range CoordinatorTools() {
		if slices.Contains([]string{"Bash", "Read", "Edit", "Write", "Glob", "Grep", "WebFetch", "NotebookEdit"}, name) {
			t.Errorf("a coordinator has %s", name)
		}
	}
	if !slices.IsSorted(CoordinatorTools()) {
		t.Errorf("%q", CoordinatorTools())
	}
}

// The prompts keep to what the code does: their tools are those that there are,
// their examples pass the check, and none says anything at length.
func TestPromptsFitTheCode(t *testing.T) {
	p := CoordinatorPrompt()
	for _, tool := range CoordinatorTools() {
		if !strings.Contains(p, "- "+tool+" ") {
			t.Errorf("the coordinator is not told of %s", tool)
		}
	}
	for _, type_ := range []string{Verification} {
		if !strings.Contains(p, "type "+type_) {
			t.Errorf("the coordinator is not told of the type %s", type_)
		}
	}
	example := regexp.MustCompile(`(?s)\n(Good|Bad): "(.*?)"\n`).FindAllStringSubmatch(strings.Replace(p, "\nGood", "\n\nGood", 1), -1)
	if len(example) != 2 {
		t.Fatalf("%d examples", len(example))
	}
	for _, e := range example {
		missing := Check(e[2])
		if e[1] == "Good" && missing != nil || e[1] == "Bad" && len(missing) < 3 {
			t.Errorf("%s example: %v", e[1], missing)
		}
	}
	for name, text := range map[string]string{"coordinator": p, "worker": WorkerDefinition().Prompt, "forks": ForkAdvice()} {
		if n := len(text); n < 500 || n > 6500 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}
