package permission

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A script is what a command line may do, without regard to order and
// conditions: whatever is written down somewhere in it may run.
type script struct {
	commands  []command
	redirects []redirect
	unclear   string // why it cannot be known what it does; "" if it can
	sets      string // a variable it sets for all that follows, which may steer programs
}

// A command is a simple command: a program or a builtin, and its arguments.
type command struct {
	words   []word // at least one
	assigns []assign
	source  string // as written
	repeats bool   // in a loop or a function: it may run many times, or later
}

// An assign is NAME=value, in front of a command or alone.
type assign struct {
	name  string
	value word
}

// A redirect is a file that the shell itself opens.
type redirect struct {
	target word
	writes bool
	reads  bool
}

// maxScript is the length of a command line, in bytes, above which it is not
// taken apart: the parser is recursive, and nobody writes that by hand.
const maxScript = 64 << 10

// maxDepth is the depth of parentheses and braces above which a command line
// is not parsed: the time that takes is a power of the depth.
const maxDepth = 200

// parseScript takes a command line apart. What it cannot make sense of makes
// the script unclear.
func parseScript(text, home string) script {
	x := extractor{text: text, home: home}
	if reason := oddText(text); reason != "" {
		x.out.unclear = reason
		return x.out
	}
	file, err := parseBash(text)
	if err != nil {
		x.out.unclear = "it is not a command line that can be parsed"
		return x.out
	}
	for n := range syntax.Preorder(file) {
		if _, ok := n.(*syntax.FuncDecl); ok {
			x.functions = true
		}
	}
	x.walk(file)
	return x.out
}

// oddText returns why a text is not taken for a command line.
func oddText(text string) string {
	if len(text) > maxScript {
		return fmt.Sprintf("it is longer than %d bytes", maxScript)
	}
	if !utf8.ValidString(text) {
		return "it is not UTF-8"
	}
	for _, c := range []byte(text) {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return "it has control characters"
		}
	}
	depth := 0
	for _, c := range []byte(text) {
		switch c {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(0, depth-1)
		}
		if depth > maxDepth {
			return "its parentheses are nested too deep"
		}
	}
	return ""
}

// parseBash parses a command line. A panic of the parser, which is given text
// that a model wrote, counts as an error.
func parseBash(text string) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("parse: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// An extractor walks over the syntax tree of a command line.
type extractor struct {
	text, home string
	functions  bool // it defines some: no name means what it usually does
	out        script
}

func (x *extractor) fail(reason string) {
	if x.out.unclear == "" {
		x.out.unclear = reason
	}
}

// walk visits every node: the walk goes into substitutions wherever they
// stand, so no command is missed.
func (x *extractor) walk(file *syntax.File) {
	var above []syntax.Node
	repeats := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			if repeating(above[len(above)-1]) {
				repeats--
			}
			above = above[:len(above)-1]
			return false
		}
		above = append(above, n)
		if repeating(n) {
			repeats++
		}
		x.visit(n, repeats > 0)
		return true
	})
}

func repeating(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.WhileClause, *syntax.ForClause, *syntax.FuncDecl:
		return true
	}
	return false
}

func (x *extractor) visit(n syntax.Node, repeats bool) {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Coprocess || n.Disown {
			x.fail("it starts a coprocess")
		}
	case *syntax.Redirect:
		x.redirect(n)
	case *syntax.CallExpr:
		x.call(n, repeats)
	case *syntax.DeclClause:
		x.declaration(n, repeats)
	case *syntax.LetClause, *syntax.CoprocClause, *syntax.TestDecl:
		x.fail("it uses let or coproc")
	case *syntax.ForClause:
		x.loop(n)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.CStyleLoop:
		if !onlyNumbers(n) {
			x.fail("it computes with variables, which can run commands")
		}
	case *syntax.ParamExp:
		x.parameter(n)
	case *syntax.TestClause:
		x.test(n)
	}
}

func (x *extractor) call(n *syntax.CallExpr, repeats bool) {
	c := command{repeats: repeats}
	for _, a := range n.Assigns {
		if a.Index != nil || a.Array != nil || a.Append {
			x.fail("it assigns to an array or to the end of a variable")
			continue
		}
		c.assigns = append(c.assigns, assign{a.Name.Value, x.joined(a.Value)})
	}
	for _, w := range n.Args {
		c.words = append(c.words, x.words(w)...)
	}
	if len(n.Args) == 0 {
		for _, a := range c.assigns {
			if !harmlessVariable(a.name) && !safeAssign(a) {
				x.out.sets = a.name
			}
		}
		return
	}
	c.source = x.text[n.Args[0].Pos().Offset():n.Args[len(n.Args)-1].End().Offset()]
	x.add(c)
}

func (x *extractor) add(c command) {
	if len(c.words) == 0 {
		x.fail("it has a command without a name")
		return
	}
	x.out.commands = append(x.out.commands, c)
}

// declaration handles declare, export and their like as the commands that
// they are.
func (x *extractor) declaration(n *syntax.DeclClause, repeats bool) {
	c := command{repeats: repeats, words: []word{{text: n.Variant.Value}}}
	for _, a := range n.Args {
		switch {
		case a.Index != nil || a.Array != nil || a.Append:
			x.fail("it declares an array")
		case a.Name == nil:
			c.words = append(c.words, x.words(a.Value)...)
		case a.Naked:
			c.words = append(c.words, word{text: a.Name.Value})
		default:
			v := x.joined(a.Value)
			c.assigns = append(c.assigns, assign{a.Name.Value, v})
			c.words = append(c.words, word{text: a.Name.Value + "=" + v.text})
		}
	}
	c.source = x.text[n.Pos().Offset():n.End().Offset()]
	x.add(c)
}

func (x *extractor) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		x.fail("it sets a variable to a file descriptor")
	}
	out := redirect{}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		out.reads = true
	case syntax.RdrInOut:
		out.reads, out.writes = true, true
	case syntax.DplIn, syntax.DplOut:
		if descriptor(r.Word.Lit()) {
			return
		}
		out.reads, out.writes = r.Op == syntax.DplIn, r.Op == syntax.DplOut
	default:
		out.writes = true
	}
	out.target = word{text: string(anything), split: true}
	if ws := x.words(r.Word); len(ws) == 1 {
		out.target = ws[0]
	}
	x.out.redirects = append(x.out.redirects, out)
}

// descriptor reports whether the target of >& is an open file: 2, 2- or -.
func descriptor(s string) bool {
	return s == "-" || strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") == "" && s != ""
}

func (x *extractor) loop(n *syntax.ForClause) {
	if n.Select {
		x.fail("it uses select")
	}
	if it, ok := n.Loop.(*syntax.WordIter); ok && !harmlessVariable(it.Name.Value) {
		x.out.sets = it.Name.Value
	}
}

// parameter refuses the expansions that compute, set or look up something by
// the value of a variable: such a value can hold commands that bash runs.
func (x *extractor) parameter(n *syntax.ParamExp) {
	switch {
	case n.Excl, n.Index != nil && !plainIndex(n.Index), n.Slice != nil && !onlyNumbers(n):
		x.fail("it expands a variable by the value of another")
	case n.Exp != nil:
		switch n.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
			x.fail("it expands a variable in a way that can set it or run commands")
		}
	}
}

func plainIndex(e syntax.ArithmExpr) bool {
	w, ok := e.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*" || number(w))
}

// onlyNumbers reports whether no word below n is anything but a number.
func onlyNumbers(n syntax.Node) bool {
	plain := true
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && !number(w) {
			plain = false
		}
		return plain
	})
	return plain
}

func number(w *syntax.Word) bool {
	s := w.Lit()
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func (x *extractor) test(n *syntax.TestClause) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch t := n.(type) {
		case *syntax.UnaryTest:
			if t.Op == syntax.TsVarSet || t.Op == syntax.TsRefVar || t.Op == syntax.TsFdTerm {
				x.fail("it tests a variable by a name that can run commands")
			}
		case *syntax.BinaryTest:
			switch t.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				if !onlyNumbers(t) {
					x.fail("it computes with variables, which can run commands")
				}
			}
		}
		return true
	})
}

// harmlessVariable reports whether a shell variable steers neither the shell
// nor the programs it starts: those that do are in upper case or for proxies.
func harmlessVariable(name string) bool {
	return name == strings.ToLower(name) && !strings.HasSuffix(name, "_proxy") && name != "_" && name != "histchars"
}

// safeAssign reports whether a variable in front of a command changes at most
// how it presents its results.
func safeAssign(a assign) bool {
	switch a.name {
	case "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS", "LINES",
		"GOOS", "GOARCH", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "NODE_ENV":
	default:
		if !strings.HasPrefix(a.name, "LC_") {
			return false
		}
	}
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.+@/-", r))
	}
	return !strings.Contains(a.value.text, "..") && !strings.HasPrefix(a.value.text, "/") &&
		strings.IndexFunc(a.value.text, func(r rune) bool { return !plain(r) }) < 0
}
