package config

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/tailscale/hujson"
)

// A kind is the type of a node.
type kind int

const (
	isNull kind = iota
	isText
	isNumber
	isTruth // true or false
	isList
	isObject
)

func (k kind) String() string {
	return [...]string{"nothing", "a text", "a number", "true or false", "a list", "an object"}[k]
}

// A node is a value as it stands in a file, JSON or YAML, with its place. It
// keeps what the usual decoders throw away: places, and keys given twice.
type node struct {
	kind      kind
	text      string  // of a text, a number, a truth: as written, without quotes
	items     []node  // of a list
	fields    []field // of an object, in order
	line, col int
}

// A field is a member of an object. Its place is that of its key.
type field struct {
	key       string
	line, col int
	value     node
}

// empty says whether there is nothing in n that could have an effect.
func (n node) empty() bool {
	return n.kind == isNull || n.kind == isList && len(n.items) == 0 || n.kind == isObject && len(n.fields) == 0 ||
		n.kind == isTruth && n.text == "false"
}

// maxBrackets bounds how deep JSON can nest, and with it the stack that
// reading it takes.
const maxBrackets = 20_000

// parseJSON reads JSON that may hold comments and trailing commas. A text of
// white space alone is an empty object. Errors are a [Problem] without File.
func parseJSON(data []byte) (node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return node{kind: isObject, line: 1, col: 1}, nil
	}
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxBrackets {
		return node{}, Problem{Reason: "too many brackets"}
	}
	v, err := hujson.Parse(data)
	if err != nil {
		p := Problem{Reason: err.Error()}
		// The parser tells the place in its text only.
		if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &p.Line, &p.Column); n == 2 {
			if inner := errors.Unwrap(err); inner != nil {
				p.Reason = inner.Error()
			}
		}
		return node{}, p
	}
	return newPlaces(data).node(v), nil
}

// places finds lines and columns in a text.
type places struct{ starts []int } // offset at which each line starts

func newPlaces(data []byte) places {
	starts := []int{0}
	for i, b := range data {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return places{starts}
}

func (p places) at(offset int) (line, col int) {
	line = sort.SearchInts(p.starts, offset+1)
	return line, offset - p.starts[line-1] + 1
}

func (p places) node(v hujson.Value) node {
	var n node
	n.line, n.col = p.at(v.StartOffset)
	switch v := v.Value.(type) {
	case hujson.Literal:
		n.text = v.String()
		switch v.Kind() {
		case '"':
			n.kind = isText
		case '0':
			n.kind = isNumber
		case 't', 'f':
			n.kind = isTruth
		}
	case *hujson.Array:
		n.kind = isList
		for _, e := range v.Elements {
			n.items = append(n.items, p.node(e))
		}
	case *hujson.Object:
		n.kind = isObject
		for _, m := range v.Members {
			f := field{key: m.Name.Value.(hujson.Literal).String(), value: p.node(m.Value)}
			f.line, f.col = p.at(m.Name.StartOffset)
			n.fields = append(n.fields, f)
		}
	}
	return n
}

// wrong is the problem of a value that has the wrong type.
func (n node) wrong(file, key string, want kind) Problem {
	return Problem{File: file, Line: n.line, Column: n.col,
		Reason: fmt.Sprintf("%s must be %s, not %s", key, want, n.kind)}
}

// unquote takes one pair of equal quotes off a text.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		inner := s[1 : len(s)-1]
		if s[0] == '"' {
			return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(inner)
		}
		return strings.ReplaceAll(inner, "''", "'")
	}
	return s
}
