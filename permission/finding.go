package permission

import "github.com/troupe-sh/troupe"

// Words for who decided, as [troupe.Verdict] has them.
const (
	byRule   = "rule"
	byMode   = "mode"
	byPlace  = "workingDir"
	bySafety = "safetyCheck"

	byClassifier = "classifier"
)

// A finding is what one part of a call comes to, before the mode has had its
// word. The parts of a call are combined by [worse].
type finding struct {
	effect troupe.Effect
	by     string
	reason string
	firm   bool // an ask that no mode lifts: a rule asks, or might deny
	reads  bool // nothing but reading
	beyond bool // an ask about something that a sandbox does not hold back
}

func allow(by, reason string) finding {
	return finding{effect: troupe.Allow, by: by, reason: reason}
}

func reading(by, reason string) finding {
	return finding{effect: troupe.Allow, by: by, reason: reason, reads: true}
}

func ask(by, reason string) finding {
	return finding{effect: troupe.Ask, by: by, reason: reason}
}

func firmAsk(by, reason string) finding {
	return finding{effect: troupe.Ask, by: by, reason: reason, firm: true}
}

func deny(by, reason string) finding {
	return finding{effect: troupe.Deny, by: by, reason: reason}
}

// beyondSandbox is f as an ask that no sandbox lifts.
func (f finding) beyondSandbox() finding {
	f.beyond = true
	return f
}

// rank orders findings by how much they stand in the way.
func (f finding) rank() int {
	switch {
	case f.effect == troupe.Allow:
		return 0
	case f.effect == troupe.Ask && !f.firm:
		return 1
	case f.effect == troupe.Ask:
		return 2
	}
	return 3
}

// worse combines the findings of two parts: the more restrictive one counts,
// and the whole only reads if both only read.
func worse(a, b finding) finding {
	reads, beyond := a.reads && b.reads, a.beyond || b.beyond
	switch {
	case b.rank() > a.rank():
		a = b
	case b.rank() == a.rank() && a.reads:
		a = b // of two that allow, the one that does more tells more
	}
	a.reads, a.beyond = reads, beyond
	return a
}
