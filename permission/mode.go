package permission

import (
	"fmt"
	"slices"
	"strings"
)

// A Mode is the general attitude of the user: what becomes of calls that no
// rule speaks of. The zero value acts as [Default].
type Mode string

// The modes, from the narrowest to the widest.
const (
	Plan        Mode = "plan"              // only reading; allow rules do not widen it
	DontAsk     Mode = "dontAsk"           // what would be asked is denied
	Default     Mode = "default"           // reading is free, the rest is asked
	AcceptEdits Mode = "acceptEdits"       // so are edits in the working directories
	Auto        Mode = "auto"              // and commands that a sandbox confines; see [Sandbox]
	Bypass      Mode = "bypassPermissions" // all that no deny or ask rule speaks of is allowed
)

// Modes returns all modes, from the narrowest to the widest.
func Modes() []Mode { return []Mode{Plan, DontAsk, Default, AcceptEdits, Auto, Bypass} }

// ParseMode reads the name of a mode, as users write it on the command line
// and in settings. "" and "manual" are other names of [Default].
func ParseMode(name string) (Mode, error) {
	if name == "" || name == "manual" {
		return Default, nil
	}
	if m := Mode(name); slices.Contains(Modes(), m) {
		return m, nil
	}
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", fmt.Errorf("unknown permission mode %q: it is one of %s", name, strings.Join(names, ", "))
}

// Inherit returns the mode of a child that asks for want, if m is the mode of
// its parent. Rights only shrink on the way down: what is wider than m, or
// unknown, becomes m. A parent in [AcceptEdits] or a wider mode passes its mode
// on whatever the child asks for, as it was the user who chose it.
func (m Mode) Inherit(want Mode) Mode {
	m = m.orDefault()
	if want == "" || m.handsDown() {
		return m
	}
	if width := want.orDefault().width(); width >= 0 && width <= m.width() {
		return want
	}
	return m
}

// Wider reports whether m lets more pass than other. A mode that does not exist
// is wider than all.
func (m Mode) Wider(other Mode) bool {
	width := m.orDefault().width()
	return width < 0 || width > other.orDefault().width()
}

// width orders the modes by what they allow; -1 is a mode that does not exist.
func (m Mode) width() int { return slices.Index(Modes(), m) }

func (m Mode) orDefault() Mode {
	if m == "" || m == "manual" {
		return Default
	}
	return m
}
