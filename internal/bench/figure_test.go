package main

import (
	"errors"
	"strings"
	"testing"
)

func TestFigure(t *testing.T) {
	for _, tt := range []struct {
		values  []float64
		bar     float64
		median  float64
		verdict string
	}{
		{[]float64{9, 1, 2}, 2, 2, "met"},
		{[]float64{9, 1, 2}, 1.9, 2, "MISSED"},
		{[]float64{4, 1, 3, 2}, 0, 2.5, ""},
		{[]float64{0, 0}, 40, 0, "not known here"},
	} {
		f := figure{what: "what", unit: "ms", values: tt.values, bar: tt.bar}
		if f.median() != tt.median || f.verdict() != tt.verdict {
			t.Errorf("%v, bar %v: median %v, %q; want %v, %q", tt.values, tt.bar, f.median(), f.verdict(), tt.median, tt.verdict)
		}
	}
	text := table([]figure{{what: "start", unit: "ms", values: []float64{3, 1, 2}, bar: 1}})
	if !strings.HasSuffix(text, "\n| start | 2.00 ms | 1.00 … 3.00 | ≤ 1 ms | MISSED |\n") {
		t.Error(text)
	}
}

// The first run counts for nothing, and a run that fails ends the measuring.
func TestRepeat(t *testing.T) {
	b, n := &bench{}, 0.0
	figures, err := b.repeat(t.Context(), 3, []figure{{what: "a"}, {what: "b"}}, func() ([]float64, error) {
		n++
		return []float64{n, 10 * n}, nil
	})
	if err != nil || len(figures[0].values) != 3 || figures[0].values[0] != 2 || figures[1].values[2] != 40 {
		t.Errorf("%+v, %v", figures, err)
	}
	broken := errors.New("broken")
	if _, err := b.repeat(t.Context(), 3, []figure{{what: "a"}}, func() ([]float64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
