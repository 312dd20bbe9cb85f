package config

import (
	"cmp"
	"time"
)

// Limits are what settings let a session, or an agent below its lead, use. What
// is 0 is not limited.
type Limits struct {
	Dollars float64 // for models
	Tokens  int     // read and written
	Time    time.Duration
}

// And returns l with each limit of o that is lower.
func (l Limits) And(o Limits) Limits {
	return Limits{lower(l.Dollars, o.Dollars), lower(l.Tokens, o.Tokens), lower(l.Time, o.Time)}
}

// lower is the lower of two limits, of which 0 is none.
func lower[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// limits takes the limits of the session and of each agent below its lead. Of
// several the lowest counts, whoever says it, for a limit only takes away. One
// that cannot be read stops the start: nobody would know that there is none.
func (r *settingsReader) limits(f field) {
	before := len(r.problems)
	r.eachLimit(f)
	r.lost = append(r.lost, r.problems[before:]...)
	r.problems = r.problems[:before]
}

func (r *settingsReader) eachLimit(f field) {
	if !r.object(f) {
		return
	}
	for _, f := range f.value.fields {
		switch f.key {
		case "session":
			r.limit(&r.l.cfg.Limits, f)
		case "agent":
			r.limit(&r.l.cfg.Each, f)
		default:
			r.unknown(f, "limits.", []string{"session", "agent"})
		}
	}
}

func (r *settingsReader) limit(to *Limits, of field) {
	if !r.object(of) {
		return
	}
	for _, f := range of.value.fields {
		var l Limits
		switch f.key {
		case "usd":
			var n *float64
			if r.number(&n, f); n != nil && *n == 0 {
				r.wrong(f, "usd cannot be 0; leave it out for no limit")
			} else if n != nil {
				l.Dollars = *n
			}
		case "tokens":
			r.count(&l.Tokens, f)
		case "time":
			l.Time = r.duration(f)
		default:
			r.unknown(f, "limits."+of.key+".", []string{"usd", "tokens", "time"})
		}
		if l != (Limits{}) {
			*to = to.And(l)
			r.l.cfg.limits = append(r.l.cfg.limits, Entry{"limits." + of.key + "." + f.key, f.value.text, r.from.source})
		}
	}
}

// duration takes a time that is longer than none; 0 is that there is none.
func (r *settingsReader) duration(f field) time.Duration {
	if f.value.kind == isNull {
		return 0
	}
	d, err := time.ParseDuration(f.value.text)
	if f.value.kind != isText || err != nil || d <= 0 {
		r.wrong(f, "%s: want a time as in \"90s\" or \"1h30m\"", f.key)
		return 0
	}
	return d
}
