package cli

import (
	"slices"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// A Price returns what tokens of a model cost in dollars. The model is a full
// name, "provider/name"; known is false if there is no price for it.
type Price func(model string, u troupe.Usage) (dollars float64, known bool)

// A Tally adds up what the agents of a session did. The zero value with a
// Price is ready.
type Tally struct {
	Price   Price
	Model   string // that the lead goes on with, if its first record is not among those that pass
	Denials []Denial
	Models  []ModelUse // in the order of first use
	Waited  time.Duration
	// Uncompacted is why the lead's conversation was not cut short when that was
	// last to be done, "" if it was, or if the lead has answered since.
	Uncompacted string
	// Failed are the reasons for which the lead's conversation was not cut short,
	// each once.
	Failed    []string
	Fallbacks []Fallback

	agents  map[string]*agent
	order   []*agent // in which they came
	inTools bool     // the lead's last reply had calls
}

// A ModelUse is what one model was used for.
type ModelUse struct {
	Model string
	Usage troupe.Usage

	uncounted int // replies that came without usage: one that was cut off costs something, too
}

// add takes usage of a model into a list of what models were used for.
func add(uses []ModelUse, model string, u troupe.Usage) []ModelUse {
	i := slices.IndexFunc(uses, func(m ModelUse) bool { return m.Model == model })
	if i < 0 {
		i, uses = len(uses), append(uses, ModelUse{Model: model})
	}
	m := &uses[i]
	if m.Usage = m.Usage.Add(u); u == (troupe.Usage{}) {
		m.uncounted++
	}
	return uses
}

// A Denial is a call that was not allowed.
type Denial struct {
	Agent, Tool string
	Use         troupe.ToolUse
	Verdict     troupe.Verdict
}

// A Fallback is a model that an agent went on with because the one it had was
// not to be reached.
type Fallback struct{ Agent, From, Model, Cause string }

// An agent is what is known of one while its records pass.
type agent struct {
	id, definition, call string
	parent               string
	depth                int
	models               []ModelUse
	model                string
	asked                time.Time // since when its model has the word
	uses                 map[string]troupe.ToolUse
	replies              int
	size                 int  // of the conversation when it was last to be cut short, in tokens
	billed               bool // since its model has the word
}

// deepest is how far agents are indented: a log can say anything.
const deepest = 8

// Add takes a record in. Records of a session come in order.
func (t *Tally) Add(r session.Record) {
	if t.agents == nil {
		t.agents = map[string]*agent{}
	}
	a := t.agents[r.Agent]
	if a == nil {
		a = &agent{id: r.Agent, model: t.Model, uses: map[string]troupe.ToolUse{}}
		t.agents[r.Agent] = a
		t.order = append(t.order, a)
	}
	switch ev := r.Event.(type) {
	case troupe.Started:
		a.definition, a.call, a.parent, a.model = ev.Definition, ev.Call, ev.Parent, ev.Request.Model
		a.depth = min(max(ev.Depth, 0), deepest)
	case troupe.Switched:
		if ev.Model != "" {
			if ev.Cause != "" {
				t.Fallbacks = append(t.Fallbacks, Fallback{a.id, a.model, ev.Model, ev.Cause})
			}
			a.model = ev.Model
		}
	case troupe.Replied:
		a.replies++
		if r.Agent == session.Lead {
			t.inTools, t.Uncompacted = len(ev.Message.ToolUses()) > 0, ""
		}
		for _, u := range ev.Message.ToolUses() {
			a.uses[u.ID] = u
		}
		if ev.Usage != (troupe.Usage{}) || !a.billed {
			t.use(a, ev.Usage)
		}
		a.billed = false
		if !a.asked.IsZero() {
			t.Waited += r.Time.Sub(a.asked)
		}
	case troupe.Compacted:
		if r.Agent == session.Lead {
			t.Uncompacted = ""
		}
		t.use(a, ev.Usage)
		t.Waited += ev.Took
	case troupe.NotCompacted:
		if r.Agent == session.Lead {
			t.Uncompacted = ev.Err
			if !slices.Contains(t.Failed, ev.Err) {
				t.Failed = append(t.Failed, ev.Err)
			}
		}
	case troupe.Billed:
		t.use(a, ev.Usage)
		a.billed = true
	case troupe.Retrying:
		a.billed = false
	case troupe.Decided:
		if ev.Verdict.Effect != troupe.Allow {
			u := a.uses[ev.Use]
			t.Denials = append(t.Denials, Denial{Agent: a.id, Tool: u.Name, Use: u, Verdict: ev.Verdict})
		}
	}
	a.asked = r.Time
}

// Turn begins another turn of the same program: what a result tells of one turn
// alone is at nothing again.
func (t *Tally) Turn() { t.Denials, t.Waited, t.Failed, t.Fallbacks = nil, 0, nil, nil }

// use notes what the agent's model was used for.
func (t *Tally) use(a *agent, u troupe.Usage) {
	a.models = add(a.models, a.model, u)
	t.Models = add(t.Models, a.model, u)
}

// Usage is that of all agents.
func (t *Tally) Usage() (sum troupe.Usage) {
	for _, m := range t.Models {
		sum = sum.Add(m.Usage)
	}
	return sum
}

// Cost is that of all agents. It is not known if that of one model is not, or
// if nobody has said how much was used.
func (t *Tally) Cost() (dollars float64, known bool) {
	for _, m := range t.Models {
		d, ok := t.CostOf(m)
		if !ok {
			return 0, false
		}
		dollars += d
	}
	return dollars, len(t.Models) > 0
}

// CostOf is that of one model.
func (t *Tally) CostOf(m ModelUse) (dollars float64, known bool) {
	if m.uncounted > 0 {
		return 0, false
	}
	return t.Price(m.Model, m.Usage)
}
