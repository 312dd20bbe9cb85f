package script

import "testing"

func TestTemplate(t *testing.T) {
	known := map[string]bool{"a": true}
	found := facts{"a": "<${a} $${a}>"}
	for text, want := range map[string]string{
		"plain":         "plain",
		"${a}":          "<${a} $${a}>",
		"x${a}y${a}":    "x<${a} $${a}>y<${a} $${a}>",
		"$${a}":         "${a}",
		"$${HOME}/$x $": "${HOME}/$x $",
		"$$ $1 {a} $":   "$$ $1 {a} $",
		"$$${a}":        "$${a}",
	} {
		tmpl, err := parseTemplate(text, known)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := tmpl.fill(found); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
