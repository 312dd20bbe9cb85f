package delegate

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// Worker is the type of agent that does the work in coordinator mode, and
// Verification the one that checks it.
const (
	Worker       = "worker"
	Verification = "verification"
)

var (
	//go:embed coordinator.md
	coordinatorPrompt string
	//go:embed worker.md
	workerPrompt string
	//go:embed forkmode.md
	forkAdvice string
)

// CoordinatorPrompt is the system prompt of a lead in coordinator mode. What it
// is told beside that is [CoordinatorFacts].
func CoordinatorPrompt() string { return coordinatorPrompt }

// ForkAdvice is what stands at the end of a lead's system prompt in fork mode.
func ForkAdvice() string { return forkAdvice }

// CoordinatorTools are the names of the tools that a coordinator has, sorted:
// nothing that reads files, changes them or runs anything.
func CoordinatorTools() []string {
	return []string{agentTool, "SendMessage", "TaskOutput", "TaskStop", "subscribe_pr_activity"}
}

// CoordinatorFacts is what a coordinator is told of its workers, to stand behind
// its prompt: the names of their tools, of the MCP servers that are connected, and
// the directory that they share; "" is none. The order and repetitions of names
// make no difference.
func CoordinatorFacts(tools, servers []string, scratchpad string) string {
	var b strings.Builder
	b.WriteString("\n# Your workers\nTools of a worker: " + names(tools) + ".\nMCP servers that it can reach: " + names(servers) + ".\n")
	if scratchpad != "" {
		b.WriteString("Scratchpad: " + oneWordLine(scratchpad) + "\nWorkers read and write there without asking, and it outlives them. Have them keep there what several need; how it is laid out is yours to say.\n")
	}
	return b.String()
}

// names is a list of names in a sentence, sorted.
func names(list []string) string {
	list = slices.Clone(list)
	for i, name := range list {
		list[i] = oneWordLine(name)
	}
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// oneWordLine keeps a name from having lines of its own in a prompt.
func oneWordLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

// WorkerDefinition is the definition of workers. They start nobody and write to
// nobody, so that nothing recurses.
func WorkerDefinition() troupe.Definition {
	return troupe.Definition{Name: Worker, Source: "built-in", Prompt: strings.TrimSpace(workerPrompt),
		Description: "Does research, or a change that is specified, and reports. Give it files and lines, what to do, what to hand back, and how one sees that it is done.",
		Disallowed:  []string{agentTool, "SendMessage", "StructuredOutput", "TeamCreate", "TeamDelete"}}
}

// CoordinatorDefinitions returns the types of agents that a coordinator may
// start, sorted by name: of those of our own making worker and verification
// take the place of all others, and the user's stay. A user's type of the name
// of one of the two stands for it.
func CoordinatorDefinitions(all []troupe.Definition) []troupe.Definition {
	var out []troupe.Definition
	own := false
	for _, d := range all {
		if d.Source == "built-in" && d.Name != Verification {
			continue
		}
		own = own || strings.EqualFold(d.Name, Worker)
		out = append(out, d)
	}
	if !own {
		out = append(out, WorkerDefinition())
	}
	slices.SortFunc(out, func(a, b troupe.Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}
