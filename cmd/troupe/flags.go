package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags are those of a run.
type flags struct {
	coordinator                                     bool
	print, verbose, resumeLast, fork, skip, forking bool

	input, prompter          string
	partial, replay, mayskip bool
	set                      *pflag.FlagSet // that they are registered in

	model, effort, output, resume, session, mode, agents, agent, add, settings, system string

	turns, tokens      int
	dollars            float64
	time               time.Duration
	fallback           []string
	sources            []string // of settings; nil: all
	allowed, forbidden list
	tools              list
	passing            bool
	dirs               []string
}

// lists are the flags that take several values. Their camel-case spellings are
// those of other tools.
var listFlags = map[string]string{
	"--allowed-tools": "--allowed-tools", "--allowedTools": "--allowed-tools",
	"--disallowed-tools": "--disallowed-tools", "--disallowedTools": "--disallowed-tools",
	"--add-dir": "--add-dir", "--tools": "--tools",
}

// spread gives each value of a list its own flag: a list goes on until the next
// flag.
func spread(args []string) []string {
	var out []string
	name := ""
	for i, a := range args {
		head, value, has := strings.Cut(a, "=")
		switch {
		case a == "--":
			return append(out, args[i:]...)
		case listFlags[head] != "" && has:
			out, name = append(out, listFlags[head]+"="+value), ""
		case listFlags[a] != "":
			name = listFlags[a]
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "-") {
				out = append(out, name) // the parser says that it wants a value
			}
		case strings.HasPrefix(a, "-") && a != "-":
			out, name = append(out, a), ""
		case name != "":
			out = append(out, name+"="+a)
		default:
			out = append(out, a)
		}
	}
	return out
}

// A list is rules, separated by commas or spaces outside of parentheses.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Type() string   { return "rules" }

func (l *list) Set(s string) error {
	depth, start := 0, 0
	for i, r := range s + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth <= 0 && (r == ',' || r == ' '), i == len(s):
			if rule := strings.TrimSpace(s[start:i]); rule != "" {
				*l = append(*l, rule)
			}
			start = i + 1
		}
	}
	return nil
}

func (f *flags) register(set *pflag.FlagSet) {
	set.BoolVar(&f.coordinator, "coordinator", false, "have the lead only delegate: workers research, change and verify")
	set.BoolVarP(&f.print, "print", "p", false, "answer one prompt and end")
	set.StringVar(&f.model, "model", "", "model to use: `provider/name`, or an alias of your settings")
	set.StringVar(&f.effort, "effort", "", "how much the model is to think: `level` low, medium, high, xhigh or max, or a number of tokens")
	set.StringVar(&f.output, "output-format", "text", "`format`: text, json or stream-json")
	set.BoolVar(&f.verbose, "verbose", false, "show on stderr what the agents do")
	set.StringVarP(&f.resume, "resume", "r", "", "go on with the session of this `ID`, or its beginning")
	set.BoolVarP(&f.resumeLast, "continue", "c", false, "go on with the newest session of this directory")
	set.BoolVar(&f.fork, "fork-session", false, "with --resume or --continue: leave the session as it is and go on in a copy")
	set.BoolVar(&f.passing, "no-session-persistence", false, "with -p: remove the session's logs at the end")
	set.BoolVar(&f.forking, "fork", false, "agents for which the lead names no type are forks: they know its conversation, and work in the background")
	set.StringVar(&f.session, "session-id", "", "`UUID` of the new session")
	set.IntVar(&f.turns, "max-turns", 0, "end after `N` requests to the model")
	set.Float64Var(&f.dollars, "max-budget-usd", 0, "spend no more than `N` dollars on models, sub-agents included")
	set.IntVar(&f.tokens, "max-tokens", 0, "read and write no more than `N` tokens, sub-agents and cache included")
	set.DurationVar(&f.time, "max-time", 0, "end after a `duration`, as in 90s or 1h30m")
	set.StringSliceVar(&f.fallback, "fallback-model", nil, "`models` to go on with, in order, when the one in use is overloaded or cannot be reached")
	set.StringVar(&f.mode, "permission-mode", "", "`mode`: default, acceptEdits, auto, plan, dontAsk or bypassPermissions")
	set.BoolVar(&f.skip, "dangerously-skip-permissions", false, "the same as --permission-mode bypassPermissions")
	set.Var(&f.allowed, "allowed-tools", "calls to allow, as in \"Bash(git *)\" Read")
	set.Var(&f.forbidden, "disallowed-tools", "calls to deny, in every mode")
	set.Var(&f.tools, "tools", "names of the only tools that agents have, as in Read,Grep; \"\" is none, default is all")
	set.StringArrayVar(&f.dirs, "add-dir", nil, "further `directory` to work in")
	set.StringVar(&f.agents, "agents", "", "definitions of agents, a `JSON` object by name")
	set.StringVar(&f.agent, "agent", "", "`name` of the agent to be")
	set.StringVar(&f.add, "append-system-prompt", "", "`text` to add to the system prompt")
	set.StringVar(&f.system, "system-prompt", "", "`text` to be the system prompt, instead of troupe's own")
	set.StringVar(&f.settings, "settings", "", "settings, a `file` or a JSON object")
	set.StringSliceVar(&f.sources, "setting-sources", nil, "settings files to read, of user, project and local; \"\" is none of them")
	f.registerControl(set) // the last: it leaves alone what is there
}

const long = `troupe runs coding agents in the directory where you are: one that leads, and those it
starts for parts of the work. At a terminal it is a session in which you are asked for leave;
with -p it answers one prompt and asks nobody.

It needs a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a local one, as in
--model ollama/NAME. Nothing but reading runs without your leave: allow calls with
--allowed-tools or in settings (permissions), or choose a --permission-mode.`

const examples = `  troupe
  troupe -p "why does the build fail?"
  git diff | troupe -p "review this change"
  troupe -p "fix the failing test" --permission-mode acceptEdits --allowed-tools "Bash(go test *)"
  troupe -p "and now the docs" --continue
  troupe -p "list the exported names" --model ollama/qwen3-coder --output-format json
  troupe demo`

const exitCodes = `
Exit codes:
  0    done
  1    the run failed or hit a limit
  2    wrong use or configuration; nothing was sent to a model
  129  ended by SIGHUP      130  by SIGINT or Ctrl-C      143  by SIGTERM
`

// command returns the command that args are for. A prompt may be the name of a
// subcommand, so with -p there are none.
func (p *program) command(args []string) *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use: "troupe [flags] [prompt]", Short: "a team of coding agents", Long: long, Example: examples,
		Version: versionText(), SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := nothing(cmd.Flags()); err != nil {
				return err
			}
			return p.run(cmd.Context(), &f, args)
		},
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.notes)
	root.SetVersionTemplate("troupe {{.Version}}\n")
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes)
	root.Flags().SortFlags = false
	f.register(root.Flags())
	for flag, values := range map[string][]string{"output-format": formats, "permission-mode": modeNames()} {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // both exist
	}
	_ = root.RegisterFlagCompletionFunc("model", p.modelNames) // it exists
	if !prints(args) {
		root.AddCommand(p.demo(), p.sessions(), p.cost(), p.cache(), p.tasksCommand(), p.agents(), p.modelsCommand(), p.doctor(), p.trust())
	}
	return root
}

// nothing reports a limit of nothing: who computes one and comes to 0 does not
// mean that there is none.
func nothing(set *pflag.FlagSet) error {
	for _, name := range []string{"max-turns", "max-tokens", "max-budget-usd", "max-time"} {
		if f := set.Lookup(name); f.Changed && f.Value.String() == f.DefValue {
			return fmt.Errorf("--%s %s: want more than nothing; leave it out for no limit", name, f.Value)
		}
	}
	return nil
}

// prints reports whether -p is among the flags.
func prints(args []string) bool {
	for _, a := range args {
		switch {
		case a == "--":
			return false
		case a == "--print", a == "--print=true", cluster(a):
			return true
		}
	}
	return false
}

// cluster reports whether a is short flags of which one is p. What follows r is
// its value.
func cluster(a string) bool {
	if len(a) < 2 || a[0] != '-' || a[1] == '-' {
		return false
	}
	flags, _, _ := strings.Cut(a[1:], "r")
	return strings.Contains(flags, "p")
}
