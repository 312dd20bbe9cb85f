package proc

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
)

// flood counts what comes and says when there was enough.
type flood struct {
	*Capture
	want   int64
	enough chan struct{}
}

func (f *flood) Write(p []byte) (int, error) {
	if f.want > 0 {
		if f.want -= int64(len(p)); f.want <= 0 {
			close(f.enough)
		}
	}
	return f.Capture.Write(p)
}

// S125: a program that writes without end is neither stopped by the limits nor
// allowed beyond them.
func TestFloodOfOutput(t *testing.T) {
	const limit, much = 1 << 20, 64 << 20
	f := &flood{Capture: &Capture{Dir: t.TempDir(), Memory: 64 << 10, Limit: limit}, want: much, enough: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	c := shell("yes")
	c.Stdout, c.Stderr = f, f
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := during(func() error { _, err := Run(ctx, c); return err }, func() { <-f.enough; cancel() })
	runtime.ReadMemStats(&after)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes of output took %d bytes of memory", much, grown)
	}
	out := f.Output()
	if err := f.Close(); err != nil || out.Size < much || !out.Cut || len(out.Head)+len(out.Tail) != 64<<10 {
		t.Errorf("Close = size %d, cut %v, %v", out.Size, out.Cut, err)
	}
	if st, err := os.Stat(out.Path); err != nil || st.Size() < limit || st.Size() > limit+200 {
		t.Errorf("the file: %v, %v", st.Size(), err)
	}
}
