package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/store"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("TEST_STORE_CHILD"); root != "" {
		arm()
		if err := child(context.Background(), root); err != nil {
			fmt.Println("fail", err)
		}
		os.Exit(0)
	}
	if os.Getenv("TEST_STORE_SIT") != "" {
		sit()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child works on a store until it is killed, and says what was done for good.
func child(ctx context.Context, root string) error {
	d, err := store.OpenDir(root)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		me := fmt.Sprintf("p%d-%d", os.Getpid(), i)
		key := fmt.Sprint("n/k", rand.IntN(4))
		err := store.Update(ctx, d, key, func(old []byte) ([]byte, error) { return append(old[:len(old):len(old)], me+"\n"...), nil })
		if err != nil {
			return fmt.Errorf("update: %w", err)
		}
		fmt.Println("ack", key, me)
		if _, err := store.Create(ctx, d, "mail/"+me, []byte("hello")); err != nil {
			return fmt.Errorf("mail: %w", err)
		}
		fmt.Println("mail", "mail/"+me)
		if _, err := d.Put(ctx, fmt.Sprint("claim/", rand.IntN(500)), []byte(me), ""); err == nil {
			fmt.Println("claim", me)
		} else if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("claim: %w", err)
		}
		if err := lead(ctx, d, me); err != nil {
			return err
		}
	}
}

// lead writes under a lease without any check, which is safe if and only if
// there is one holder.
func lead(ctx context.Context, d *store.Dir, me string) error {
	l, err := d.Hold(ctx, "lease/lead", []byte(me))
	if errors.Is(err, store.ErrHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	e, err := d.Get(ctx, "lease-log")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read under a lease: %w", err)
	}
	if _, err := d.Put(ctx, "lease-log", fmt.Append(nil, l.Gen), e.Rev); err != nil {
		return fmt.Errorf("two holders: %w", err)
	}
	fmt.Println("gen", l.Gen)
	return l.Release()
}

// books hold what children have said, and how often one was killed.
type books struct {
	mu     sync.Mutex
	acked  map[string][]string
	mails  []string
	gens   map[string]bool
	claims int
	kills  int
}

func newBooks() *books { return &books{acked: map[string][]string{}, gens: map[string]bool{}} }

// run runs a child until it has said so much, or to the end if that is 0.
func (b *books) run(t *testing.T, bin, root, point string, lines int) {
	cmd := exec.Command(bin, "-test.run=^$")
	cmd.Env = append(os.Environ(), "TEST_STORE_CHILD="+root, "TEST_STORE_POINT="+point)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	r := bufio.NewReader(out)
	for n := 1; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		b.note(t, strings.Fields(line))
		if n == lines {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a child has ended by itself")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kills++
}

func (b *books) note(t *testing.T, f []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch f[0] {
	case "ack":
		b.acked[f[1]] = append(b.acked[f[1]], f[2])
	case "mail":
		b.mails = append(b.mails, f[1])
	case "claim":
		b.claims++
	case "gen":
		if b.gens[f[1]] {
			t.Errorf("generation %s twice", f[1])
		}
		b.gens[f[1]] = true
	default:
		t.Error(f)
	}
}

// check compares the store with what was said: nothing of it is lost or there
// twice, and a child has done one thing at most that it did not say.
func (b *books) check(t *testing.T, d *store.Dir) (updates int) {
	for key, vals := range b.acked {
		e, err := d.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for line := range strings.Lines(string(e.Value)) {
			count[strings.TrimSpace(line)]++
		}
		for _, v := range vals {
			updates++
			if count[v] != 1 {
				t.Errorf("%s: acknowledged %s is there %d times", key, v, count[v])
			}
		}
		if unsaid := len(count) - len(vals); unsaid < 0 || unsaid > b.kills {
			t.Errorf("%s: %d values that nobody acknowledged, %d kills", key, unsaid, b.kills)
		}
	}
	for _, key := range b.mails {
		if e, err := d.Get(t.Context(), key); err != nil || string(e.Value) != "hello" {
			t.Errorf("%s: %q, %v", key, e.Value, err)
		}
	}
	owned := 0
	for range d.List(t.Context(), "claim/") {
		owned++
	}
	if owned < b.claims || owned > b.claims+b.kills {
		t.Errorf("%d claims won, %d owned", b.claims, owned)
	}
	l, err := store.Wait(t.Context(), d, "lease/lead", []byte("parent")) // of the dead
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	for gen := range b.gens {
		var n uint64
		if _, err := fmt.Sscan(gen, &n); err != nil || n >= l.Gen {
			t.Errorf("generation %s was before %d, %v", gen, l.Gen, err)
		}
	}
	return updates
}

// swept checks that the next who writes alone removes what was left unfinished.
func swept(t *testing.T, root string, d *store.Dir) {
	t.Helper()
	must(t, d.Close())
	_, err := open(t, root).Put(t.Context(), "swept", nil, "")
	must(t, err)
	if left, err := filepath.Glob(filepath.Join(root, ".store", "new-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Processes are killed while they work: nothing that was acknowledged is lost,
// nothing doubled, nobody waits for the dead, a watch sees all.
func TestDirProcesses(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	seen, news := map[string]bool{}, make(chan string)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e, err := range d.Watch(ctx, "mail/") {
			if err == nil {
				select {
				case news <- e.Key:
				case <-ctx.Done():
				}
			}
		}
	})
	defer watching.Wait()
	defer cancel()

	b := newBooks()
	var procs sync.WaitGroup
	for range 5 {
		procs.Go(func() {
			for range 6 {
				b.run(t, os.Args[0], root, "", 1+rand.IntN(60))
			}
		})
	}
	procs.Wait()
	updates := b.check(t, d)
	for _, key := range b.mails {
		for !seen[key] {
			seen[<-news] = true
		}
	}
	cancel()
	watching.Wait()
	swept(t, root, d)
	t.Logf("%d updates, %d mails, %d claims, %d leases, %d kills", updates, len(b.mails), b.claims, len(b.gens), b.kills)
}

// Processes die at each step between two that belong together.
func TestDirKilledAtEveryStep(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "child.test")
	if out, err := exec.Command("go", "test", "-c", "-tags", "failpoint", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range failpoint.StorePoints() {
		t.Run(string(p), func(t *testing.T) {
			root, b := t.TempDir(), newBooks()
			for nth := 1; nth <= 6; nth++ {
				b.run(t, bin, root, fmt.Sprint(p, " ", nth), 0)
			}
			d := open(t, root)
			if updates := b.check(t, d); updates == 0 {
				t.Error("nothing was done before a death")
			}
			swept(t, root, d)
		})
	}
}

// The end of a holder is seen, and its lease free, also if it has started a
// program that lives on.
func TestDirLeaseOfTheDead(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "TEST_STORE_CHILD="+root)
	must(t, cmd.Start())
	dead := false
	for e, err := range d.Watch(t.Context(), "lease/") {
		must(t, err)
		if e.Value != nil && !dead {
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			dead = true
		}
		if e.Key == "" || !dead {
			continue
		}
		if e, err := d.Get(t.Context(), "lease/lead"); errors.Is(err, store.ErrNotFound) {
			break
		} else if err != nil {
			t.Fatal(e, err)
		}
	}
	l, err := d.Hold(t.Context(), "lease/lead", nil)
	must(t, err)
	defer l.Release()
	other := exec.Command(os.Args[0], "-test.run=^$")
	in, err := other.StdinPipe()
	must(t, err)
	other.Env = append(os.Environ(), "TEST_STORE_SIT=1")
	must(t, other.Start())
	must(t, l.Release())
	again, err := open(t, root).Hold(t.Context(), "lease/lead", nil)
	if err != nil {
		t.Errorf("a program that the holder has started keeps its lease: %v", err)
	} else {
		must(t, again.Release())
	}
	must(t, errors.Join(in.Close(), other.Wait()))
}

// sit does nothing until its input ends.
func sit() { _, _ = io.Copy(io.Discard, os.Stdin) }
