package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
)

// calls is how many tool calls a run makes that is about their cost.
const calls = 200

// A figure is what was measured, once for each run, and the bar for the median;
// a bar of 0 is none.
type figure struct {
	what   string
	unit   string
	values []float64
	bar    float64
}

func (f figure) median() float64 {
	s := slices.Sorted(slices.Values(f.values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// verdict says whether the bar is met.
func (f figure) verdict() string {
	switch {
	case f.bar == 0:
		return ""
	case f.median() == 0:
		return "not known here"
	case f.median() <= f.bar:
		return "met"
	}
	return "MISSED"
}

// table prints figures in Markdown.
func table(figures []figure) string {
	var b strings.Builder
	b.WriteString("| figure | median | lowest … highest | bar | |\n|---|---|---|---|---|\n")
	for _, f := range figures {
		bar := "–"
		if f.bar > 0 {
			bar = fmt.Sprintf("≤ %g %s", f.bar, f.unit)
		}
		fmt.Fprintf(&b, "| %s | %.2f %s | %.2f … %.2f | %s | %s |\n", f.what, f.median(), f.unit, slices.Min(f.values), slices.Max(f.values), bar, f.verdict())
	}
	return b.String()
}

// milliseconds is the unit of most figures.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// repeat fills figures with what as many runs as are wanted have given, a value
// for each figure. One run before them counts for nothing: it brings files into
// memory.
func (b *bench) repeat(ctx context.Context, runs int, figures []figure, once func() ([]float64, error)) ([]figure, error) {
	for i := range runs + 1 {
		if err := b.quiet(ctx); err != nil {
			return nil, err
		}
		values, err := once()
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", figures[0].what, err)
		}
		for n := range figures {
			if i > 0 {
				figures[n].values = append(figures[n].values, values[n])
			}
		}
	}
	return figures, nil
}

// figures takes all measurements.
func (b *bench) figures(ctx context.Context, tree string, files int) (out []figure, err error) {
	plain := filepath.Join(b.dir, "plain")
	for _, take := range []func() ([]figure, error){
		func() ([]figure, error) { return b.version(ctx, plain) },
		func() ([]figure, error) { return b.starts(ctx, plain, "a directory of its own") },
		func() ([]figure, error) { return b.starts(ctx, tree, fmt.Sprintf("a repository of %d files", files)) },
		func() ([]figure, error) { return b.reads(ctx, plain) },
		func() ([]figure, error) { return b.shells(ctx, plain) },
		func() ([]figure, error) { return b.decisions(ctx, plain) },
		func() ([]figure, error) { return b.siblings(ctx, plain) },
		func() ([]figure, error) { return b.resumes(ctx) },
		func() ([]figure, error) { return b.long(ctx, plain) },
		func() ([]figure, error) { return b.searches(ctx, tree, "a word", "SessionManager") },
		func() ([]figure, error) { return b.searches(ctx, tree, "a pattern", `Session[A-Z]\w+_\d+`) },
	} {
		got, err := take()
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// version measures the start of the program alone, and beside it that of one
// that does nothing but, as every program that speaks HTTP, has that in it.
func (b *bench) version(ctx context.Context, dir string) ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench itself: %w", err)
	}
	figures := []figure{{what: "`troupe --version`", unit: "ms", bar: 10}, {what: "a Go program with net/http that does nothing", unit: "ms"}}
	return b.repeat(ctx, b.runs, figures, func() ([]float64, error) {
		p, err := b.start(ctx, dir, b.env, b.troupe, "--version")
		if err != nil {
			return nil, err
		}
		other, err := b.start(ctx, dir, b.env, self, "-nothing")
		return []float64{milliseconds(p.took), milliseconds(other.took)}, err
	})
}

// starts measures the smallest runs: one request, one reply.
func (b *bench) starts(ctx context.Context, dir, where string) ([]figure, error) {
	figures := []figure{
		{what: "start to the first byte of the first request, in " + where, unit: "ms", bar: 30},
		{what: "memory of that run at its peak", unit: "MB", bar: 40},
	}
	return b.repeat(ctx, b.runs, figures, func() ([]float64, error) {
		p, times, err := b.run(ctx, dir, nil)
		if err != nil {
			return nil, err
		}
		return []float64{milliseconds(times[0].asked.Sub(p.began)), p.memory}, nil
	})
}

// reads measures a run that makes many calls, one after another.
func (b *bench) reads(ctx context.Context, dir string) ([]figure, error) {
	var plan []call
	for i := range calls {
		plan = append(plan, call{"Read", map[string]any{"file_path": filepath.Join(dir, fmt.Sprintf("file%d.txt", i))}})
	}
	figures := []figure{{what: fmt.Sprintf("CPU of a call of Read and the request after it, the mean of a run with %d", calls), unit: "ms", bar: 1}}
	return b.repeat(ctx, max(1, b.runs/3), figures, func() ([]float64, error) {
		p, _, err := b.run(ctx, dir, plan)
		return []float64{milliseconds(p.cpu) / calls}, err
	})
}

// shells measures the same for commands of a shell, whose own work counts too.
func (b *bench) shells(ctx context.Context, dir string) ([]figure, error) {
	const n = calls / 4
	plan := slices.Repeat([]call{{"Bash", map[string]any{"command": "true", "description": "Do nothing"}}}, n)
	figures := []figure{
		{what: fmt.Sprintf("time of a shell command, `true`, the mean of a run with %d", n), unit: "ms"},
		{what: "CPU of it with that of the shell", unit: "ms"},
	}
	return b.repeat(ctx, max(1, b.runs/3), figures, func() ([]float64, error) {
		p, times, err := b.run(ctx, dir, plan)
		if err != nil {
			return nil, err
		}
		return []float64{milliseconds(times[n].asked.Sub(times[0].answered)) / n, milliseconds(p.cpu) / n}, nil
	})
}

// decisions measures what it takes to decide whether a command may run, under
// the rules of a usual user.
func (b *bench) decisions(ctx context.Context, dir string) ([]figure, error) {
	policy := permission.Policy{Home: dir}
	for effect, texts := range map[troupe.Effect][]string{
		troupe.Allow: {"Bash(git *)", "Bash(npm run *)", "Bash(make *)", "Bash(go test *)", "Bash(go build *)", "Edit(src/**)"},
		troupe.Deny:  {"Bash(rm *)", "Bash(curl *)", "Read(.env)"},
	} {
		for _, text := range texts {
			r, err := permission.ParseRule(effect, text, permission.Origin{})
			if err != nil {
				return nil, fmt.Errorf("a rule to decide by: %w", err)
			}
			policy.Rules = append(policy.Rules, r)
		}
	}
	const n = 1000
	commands := []string{`{"command":"go test ./..."}`, `{"command":"cd . && grep -n func file1.txt | head -5; git status 2>&1"}`}
	figures := []figure{{what: "a decision on a shell command", unit: "µs", bar: 100}, {what: "a decision on a line of four commands", unit: "µs"}}
	return b.repeat(ctx, b.runs, figures, func() ([]float64, error) {
		var took []float64
		for _, input := range commands {
			began := b.now()
			for range n {
				policy.Decide(&troupe.Call{ToolUse: troupe.ToolUse{Name: "Bash", Input: []byte(input)}, Place: troupe.Place{Dir: dir}})
			}
			took = append(took, milliseconds(b.now().Sub(began))*1000/n)
		}
		return took, nil
	})
}

// searches measures Grep beside rg, in turn, so that a busy machine is busy
// for both. Our time is from the reply with the call to the request with its
// result.
func (b *bench) searches(ctx context.Context, tree, what, pattern string) ([]figure, error) {
	figures := []figure{{what: "Grep for " + what + " in that repository", unit: "ms"}, {what: "rg for the same", unit: "ms"}, {what: "Grep ÷ rg", unit: "×", bar: 2}}
	rg, missing := proc.Look("rg", b.env)
	if missing != nil {
		figures = figures[:1]
		b.note("rg is missing: Grep was not compared with it.")
	}
	return b.repeat(ctx, b.runs, figures, func() ([]float64, error) {
		_, times, err := b.run(ctx, tree, []call{{"Grep", map[string]any{"pattern": pattern, "head_limit": 0}}})
		if err != nil {
			return nil, err
		}
		ours := milliseconds(times[1].asked.Sub(times[0].answered))
		if missing != nil {
			return []float64{ours}, nil
		}
		p, err := b.start(ctx, tree, b.env, rg, "--no-config", "--files-with-matches", "--regexp", pattern, ".")
		theirs := milliseconds(p.took)
		return []float64{ours, theirs, ours / theirs}, err
	})
}

// note remembers what should be known of the figures, once.
func (b *bench) note(text string) {
	if !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}
