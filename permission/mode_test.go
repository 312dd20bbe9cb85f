package permission

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseMode(t *testing.T) {
	for name, want := range map[string]Mode{
		"": Default, "default": Default, "manual": Default, "acceptEdits": AcceptEdits, "auto": Auto, "plan": Plan, "dontAsk": DontAsk, "bypassPermissions": Bypass,
	} {
		if m, err := ParseMode(name); err != nil || m != want {
			t.Errorf("ParseMode(%q) = %q, %v", name, m, err)
		}
	}
	for name, says := range map[string]string{"Auto": "unknown", "yolo": "plan, dontAsk, default, acceptEdits, auto, bypassPermissions", "Plan": "unknown"} {
		if m, err := ParseMode(name); err == nil || !strings.Contains(err.Error(), says) || m != "" {
			t.Errorf("ParseMode(%q) = %q, %v", name, m, err)
		}
	}
}

func TestInherit(t *testing.T) {
	for _, c := range []struct{ parent, want, is Mode }{
		{Default, "", Default}, {Default, Plan, Plan}, {Default, DontAsk, DontAsk}, {Default, AcceptEdits, Default}, {Default, Bypass, Default},
		{Plan, Default, Plan}, {Plan, Bypass, Plan}, {Plan, "", Plan}, {DontAsk, Default, DontAsk}, {DontAsk, Plan, Plan}, {"", AcceptEdits, Default},
		{AcceptEdits, Plan, AcceptEdits}, {AcceptEdits, Bypass, AcceptEdits}, {Bypass, Plan, Bypass}, {Bypass, "", Bypass}, {Default, Auto, Default},
		{AcceptEdits, Auto, AcceptEdits}, {Auto, AcceptEdits, Auto}, {Auto, Plan, Auto}, {Auto, Bypass, Auto}, {Bypass, Auto, Bypass}, {Plan, Auto, Plan},
	} {
		if m := c.parent.Inherit(c.want); m != c.is {
			t.Errorf("%q.Inherit(%q) = %q, want %q", c.parent, c.want, m, c.is)
		}
	}
}

// However deep the tree and whatever its agents ask for, no mode is wider than
// that of the lead.
func TestInheritOnlyShrinks(t *testing.T) {
	mode := rapid.OneOf(rapid.SampledFrom(append(Modes(), "", "manual", "automatic")), rapid.Custom(func(t *rapid.T) Mode { return Mode(rapid.String().Draw(t, "name")) }))
	rapid.Check(t, func(t *rapid.T) {
		lead := rapid.SampledFrom(Modes()).Draw(t, "lead")
		m := lead
		for _, want := range rapid.SliceOfN(mode, 1, 5).Draw(t, "wants") {
			child := m.Inherit(want)
			if child.orDefault().width() < 0 || child.orDefault().width() > m.orDefault().width() {
				t.Fatalf("%q.Inherit(%q) = %q is wider", m, want, child)
			}
			if (m == Bypass || m == AcceptEdits || m == Auto) && child != m {
				t.Fatalf("%q.Inherit(%q) = %q", m, want, child)
			}
			m = child
		}
	})
}

func TestModesFromNarrowToWide(t *testing.T) {
	all := Modes()
	for i, m := range all {
		for j, other := range all {
			if got := m.Wider(other); got != (i > j) {
				t.Errorf("%s wider than %s: %v", m, other, got)
			}
		}
		if !Mode("yolo").Wider(m) || m.Wider("yolo") != true {
			t.Errorf("a mode that does not exist is no bound for %s, and within none", m)
		}
	}
	if Mode("").Wider(Default) || Default.Wider("manual") || !AcceptEdits.Wider("") {
		t.Error("other names of the default mode are not as wide as it")
	}
}
