package tool

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// An automaton finds the lines that a regular expression matches. It tells
// only that a line has a match, not where, and does so several times faster
// than package regexp: it keeps the sets of places in the program that the
// search has been in, and where each byte led from there, so that most bytes
// cost one look into a table. It is for one goroutine.
type automaton struct {
	prog   *syntax.Prog
	keepCR bool // a carriage return before a line feed belongs to the line
	states map[string]*dfaState
	start  *dfaState // at the start of a line
	hit    *dfaState // a match is sure

	// For one step: the places reached, and a stack of those to look at.
	reached, marked []uint32
	generation      uint32
	stack           []uint32
	key             []byte
}

// A dfaState is a set of places in the program, to be looked at with what
// comes next, and what came before.
type dfaState struct {
	places []uint32
	before rune // -1 at the start of a line, else a character that stands for its kind
	next   [utf8.RuneSelf]*dfaState
	end    *dfaState // at the end of the line: hit or start
	wide   map[rune]*dfaState
}

// maxStates bounds the memory of an automaton to some megabytes. Beyond it
// begins anew.
const maxStates = 2000

func newAutomaton(p *grepPattern) *automaton {
	a := &automaton{prog: p.prog, keepCR: p.keepCR, hit: &dfaState{}, marked: make([]uint32, len(p.prog.Inst))}
	a.forget()
	return a
}

// forget begins with no states known.
func (a *automaton) forget() {
	a.states = make(map[string]*dfaState)
	a.start = a.state([]uint32{uint32(a.prog.Start)}, -1)
}

// find returns a place in the first line of text that has a match, or -1. Text
// begins at the start of a line; its last line may lack an end.
func (a *automaton) find(text []byte) int {
	s := a.start
	for i := 0; i < len(text); {
		b := text[i]
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			if s = a.onWide(s, r); s == a.hit {
				return i
			}
			i += size
			continue
		}
		if b == '\n' || b == '\r' && !a.keepCR && (i+1 == len(text) || text[i+1] == '\n') {
			if a.onEnd(s) {
				return i
			}
			if b == '\r' && i+1 < len(text) {
				i++
			}
			s = a.start
			i++
			continue
		}
		t := s.next[b]
		if t == nil {
			t = a.step(s, rune(b))
			s.next[b] = t
		}
		if t == a.hit {
			return i
		}
		s = t
		i++
	}
	// The text may end within a line.
	if len(text) > 0 && text[len(text)-1] != '\n' && (a.keepCR || text[len(text)-1] != '\r') && a.onEnd(s) {
		return len(text) - 1
	}
	return -1
}

func (a *automaton) onWide(s *dfaState, r rune) *dfaState {
	t := s.wide[r]
	if t == nil {
		t = a.step(s, r)
		if s.wide == nil {
			s.wide = make(map[rune]*dfaState)
		}
		s.wide[r] = t
	}
	return t
}

func (a *automaton) onEnd(s *dfaState) bool {
	if s.end == nil {
		s.end = a.start
		if a.follow(s, -1) {
			s.end = a.hit
		}
	}
	return s.end == a.hit
}

// step is the state behind s when r comes next.
func (a *automaton) step(s *dfaState, r rune) *dfaState {
	if a.follow(s, r) {
		return a.hit
	}
	var places []uint32
	for _, pc := range a.reached {
		if inst := &a.prog.Inst[pc]; inst.MatchRune(r) {
			places = append(places, inst.Out)
		}
	}
	// A match may begin anywhere.
	places = append(places, uint32(a.prog.Start))
	slices.Sort(places)
	before := ' '
	if syntax.IsWordChar(r) {
		before = 'a'
	}
	return a.state(slices.Compact(places), before)
}

// follow sets reached to the places of s, and those that follow without a
// character, that want a character, given that r comes next, -1 being the end
// of the line. It reports whether the match itself is among them.
func (a *automaton) follow(s *dfaState, r rune) bool {
	context := syntax.EmptyOpContext(s.before, r)
	a.generation++
	a.reached = a.reached[:0]
	a.stack = append(a.stack[:0], s.places...)
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.marked[pc] == a.generation {
			continue
		}
		a.marked[pc] = a.generation
		switch inst := &a.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^context == 0 {
				a.stack = append(a.stack, inst.Out)
			}
		default:
			a.reached = append(a.reached, pc)
		}
	}
	return false
}

// state returns the one state of these places.
func (a *automaton) state(places []uint32, before rune) *dfaState {
	a.key = append(a.key[:0], byte(before))
	for _, pc := range places {
		a.key = append(a.key, byte(pc), byte(pc>>8), byte(pc>>16))
	}
	if s := a.states[string(a.key)]; s != nil {
		return s
	}
	if len(a.states) >= maxStates {
		a.forget()
		return a.state(places, before)
	}
	s := &dfaState{places: places, before: before}
	a.states[string(a.key)] = s
	return s
}
