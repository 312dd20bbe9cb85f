package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseStat(t *testing.T) {
	line := func(name, state, flags, threads string) string {
		return "42 (" + name + ") " + state + " 7 42 40 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 " + threads + " 0 9876 0 0\n"
	}
	running := process{pid: 42, ppid: 7, group: 42, session: 40, start: 9876}
	ended := running
	ended.zombie = true
	for name, tt := range map[string]struct {
		stat string
		want process
		err  error
	}{
		"plain":                 {stat: line("sh", "S", "0", "1"), want: running},
		"name with parentheses": {stat: line("a) Z 1 (b", "S", "0", "1"), want: running},
		"zombie":                {stat: line("sh", "Z", "0", "1"), want: ended},
		"its other threads run": {stat: line("sh", "Z", "0", "3"), want: running},
		"waited for meanwhile":  {stat: "42 (sh) X 0 -1 -1 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 9876 0 0\n", err: os.ErrProcessDone},
		"thread of the kernel":  {stat: line("kworker", "I", fmt.Sprint(0x00200000|0x40), "1"), err: errKernel},
	} {
		got, err := parseStat([]byte(tt.stat))
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, tt.want, tt.err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	if own, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(own)
	}
	f.Add([]byte("1 (x) S"))
	f.Add([]byte(") 1 ("))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if p, err := parseStat(stat); err != nil && p != (process{}) {
			t.Errorf("%+v with the error %v", p, err)
		}
	})
}

func TestHasMark(t *testing.T) {
	for environ, want := range map[string]bool{
		"TROUPE_RUN=M":                   true,
		"A=1\x00TROUPE_RUN=N,M\x00B=2":   true,
		"TROUPE_RUN=M,N\x00":             true,
		"":                               false,
		"TROUPE_RUN=":                    false,
		"TROUPE_RUN=MM":                  false,
		"X_TROUPE_RUN=M":                 false,
		"A=TROUPE_RUN=M":                 false,
		"A=x\nTROUPE_RUN=M":              false,
		"TROUPE_RUN=N\x00OTHER=M":        false,
		"TROUPE_RUN=" + "N,M,O" + "\x00": true,
	} {
		if got := hasMark([]byte(environ), "M"); got != want {
			t.Errorf("hasMark(%q) = %v", environ, got)
		}
	}
}

// pick finds every descendant and nobody else, in whatever order the table
// is, as long as each keeps a link: parent, session or mark.
func TestPick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const leader = 100
		ours := map[int]bool{leader: true}
		marked := map[int]bool{leader: true}
		table := []process{{pid: 1, session: 1, start: 1}, {pid: 50, ppid: 1, session: 50, start: 5}, {pid: leader, ppid: 50, session: leader, start: 10}}
		for pid := leader + 1; pid < leader+rapid.IntRange(1, 25).Draw(t, "number"); pid++ {
			parent := rapid.SampledFrom(table).Draw(t, "parent")
			p := process{pid: pid, ppid: parent.pid, session: parent.session, start: uint64(pid)}
			ours[pid] = ours[parent.pid]
			marked[pid] = marked[parent.pid]
			if rapid.Bool().Draw(t, "new session") {
				p.session = pid
			}
			switch rapid.SampledFrom([]string{"", "loses its mark", "loses its parent"}).Draw(t, "what") {
			case "loses its mark":
				marked[pid] = false
			case "loses its parent":
				if marked[pid] || p.session != pid {
					p.ppid = 1
				}
			}
			table = append(table, p)
		}
		g := &group{leader: Identity{PID: leader, Start: 10}, known: map[int]uint64{}}
		got := g.pick(rapid.Permutation(table).Draw(t, "table"), func(pid int) bool { return marked[pid] })
		var want, have []string
		for _, p := range table {
			if ours[p.pid] {
				want = append(want, fmt.Sprint(p.pid))
			}
		}
		for _, p := range got {
			have = append(have, fmt.Sprint(p.pid))
		}
		slices.Sort(have)
		if strings.Join(have, " ") != strings.Join(want, " ") {
			t.Fatalf("pick = %v, want %v of %+v", have, want, table)
		}
	})
}

func TestPickTrustsNoNumber(t *testing.T) {
	// The leader is dead, his pid and that of one of his heads another session.
	table := []process{
		{pid: 100, ppid: 1, session: 100, start: 90},
		{pid: 101, ppid: 100, session: 100, start: 91},
		{pid: 200, ppid: 1, session: 200, start: 95},
	}
	g := &group{leader: Identity{PID: 100, Start: 10}, known: map[int]uint64{100: 10, 200: 20}}
	if got := g.pick(table, func(int) bool { return false }); len(got) != 0 {
		t.Errorf("pick = %+v", got)
	}
	// Nothing that is older than the leader descends from him.
	g = &group{leader: Identity{PID: 200, Start: 95}, known: map[int]uint64{}}
	if got := g.pick(table, func(pid int) bool { return pid == 100 }); len(got) != 1 || got[0].pid != 200 {
		t.Errorf("pick = %+v", got)
	}
}

func BenchmarkMembers(b *testing.B) {
	self, err := Self()
	if err != nil {
		b.Fatal(err)
	}
	g := &group{leader: self, mark: "none", known: map[int]uint64{}}
	for b.Loop() {
		if _, err := g.members(); err != nil {
			b.Fatal(err)
		}
	}
}
