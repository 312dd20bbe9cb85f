// Bench measures what troupe costs: how long a start takes, how much memory a
// run, how much of the processor a tool call, and how long a search. Run it with
//
//	make bench
//
// It plays a provider of models on the loopback interface and starts the built
// binary many times, as a user does. Each figure is the median of its runs and
// stands beside the bar that it has to meet. Nothing else should be running: the
// load of the machine is printed with the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/troupe-sh/troupe/proc"
)

func main() {
	runs := flag.Int("runs", 15, "runs for each figure")
	files := flag.Int("files", 50_000, "files of the large repository")
	wait := flag.Duration("wait", 0, "longest wait, before each run, for a moment in which the machine is idle")
	nothing := flag.Bool("nothing", false, "end at once: the bench itself starts this, to compare")
	send := flag.Int("send", 0, "send `BYTES` to the URL that is named, a hundred times: the bench itself starts this, to compare")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./internal/bench [flags] PATH-OF-TROUPE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *nothing {
		return
	}
	if *send > 0 && flag.NArg() == 1 {
		if err := sendAll(flag.Arg(0), *send); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if flag.NArg() != 1 || *runs < 1 || *files < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{troupe: flag.Arg(0), runs: *runs, wait: *wait, now: time.Now, env: os.Environ()}
	if err := b.measure(ctx, *files); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure takes all figures and prints them.
func (b *bench) measure(ctx context.Context, files int) (err error) {
	if b.troupe, err = filepath.Abs(b.troupe); err != nil {
		return fmt.Errorf("find troupe: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "troupe-bench-"); err != nil {
		return fmt.Errorf("make a directory for the runs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.provider, err = startProvider(b.now); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.provider.close()) }()

	before := load()
	tree := filepath.Join(b.dir, "tree")
	fmt.Fprintf(os.Stderr, "writing %d files and committing them …\n", files)
	if err := b.prepare(ctx, tree, files); err != nil {
		return err
	}
	figures, err := b.figures(ctx, tree, files)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d processors; load before %s, after %s; medians of %d runs\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), before, load(), b.runs)
	fmt.Print(table(figures))
	if b.waits > 0 {
		b.note(fmt.Sprintf("Runs that began in a quiet moment, others using less than %g %% of the processors: %d of %d.", 100*quietest, b.waits-b.inVain, b.waits))
	}
	for _, note := range b.notes {
		fmt.Println("\n" + note)
	}
	return nil
}

// load is what the system says of the work that was waiting in the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}

// prepare writes the large repository, and the files that are read.
func (b *bench) prepare(ctx context.Context, tree string, files int) error {
	for _, dir := range []string{"plain", "home"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o700); err != nil {
			return fmt.Errorf("make a directory for the runs: %w", err)
		}
	}
	for i := range calls {
		if err := os.WriteFile(filepath.Join(b.dir, "plain", fmt.Sprintf("file%d.txt", i)), []byte(source(i, 20)), 0o600); err != nil {
			return fmt.Errorf("write a file to read: %w", err)
		}
	}
	for i := range files {
		path := filepath.Join(tree, fmt.Sprintf("pkg%d/sub%d", i%97, i%13), fmt.Sprintf("file%d.go", i))
		if i < 97*13 {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return fmt.Errorf("write the large repository: %w", err)
			}
		}
		if err := os.WriteFile(path, []byte(source(i, 40)), 0o600); err != nil {
			return fmt.Errorf("write the large repository: %w", err)
		}
	}
	return b.commit(ctx, tree)
}

// commit makes a repository of tree, which the user trusts: of another one, less
// would be asked at a start.
func (b *bench) commit(ctx context.Context, tree string) error {
	git, err := proc.Look("git", b.env)
	if err != nil {
		b.note("git is missing: the large directory was no repository.")
		return nil
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "--all"},
		{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0", "commit", "--quiet", "--message=all"},
	} {
		if _, err := b.start(ctx, tree, b.env, git, args...); err != nil {
			return err
		}
	}
	_, err = b.start(ctx, tree, b.home(), b.troupe, "trust", tree)
	return err
}

// source makes the i-th file: lines of words, and in every hundredth file the
// one that searches look for. The same i always gives the same.
func source(i, lines int) string {
	words := strings.Fields("func return if err nil string context request response value index buffer length public static void const let import from class self def print range append close open read write error handler server client message")
	random := rand.New(rand.NewPCG(1, uint64(i)))
	var text strings.Builder
	for line := range lines/2 + random.IntN(lines) {
		text.WriteString(strings.Repeat("\t", random.IntN(4)))
		for range 3 + random.IntN(7) {
			text.WriteString(words[random.IntN(len(words))] + " ")
		}
		if line == 7 && i%100 == 0 {
			text.WriteString("SessionManager_42 := 1")
		}
		text.WriteByte('\n')
	}
	return text.String()
}
