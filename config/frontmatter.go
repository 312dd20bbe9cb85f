package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A document is a Markdown file with fields in front.
type document struct {
	fields   []field
	body     string
	bodyLine int  // on which the body starts
	unclosed bool // the line that should end the fields is missing
}

// Limits of what is read in front of a document. The YAML parser takes time
// by the square of the size and of the depth.
const (
	maxHeader  = 16 << 10 // bytes
	maxNesting = 1000     // signs that open a level
)

// parseDocument splits a Markdown file. It returns nil for a file without
// front matter, which is documentation. Errors are a [Problem] without File.
func parseDocument(data []byte) (*document, error) {
	s := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	lines := strings.Split(s, "\n")
	first := 0
	for first < len(lines) && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	if first == len(lines) || strings.TrimRight(lines[first], " \t") != "---" {
		return nil, nil
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return nil, Problem{Line: first + 1, Reason: "the file is not UTF-8 text"}
	}
	first++
	end, after, unclosed := headerEnd(lines, first)
	header := lines[first:end]
	d := &document{bodyLine: after + 1, unclosed: unclosed}
	d.body = strings.TrimSpace(strings.Join(lines[min(after, len(lines)):], "\n"))
	if size := len(strings.Join(header, "\n")); size > maxHeader {
		return nil, Problem{Line: first, Reason: fmt.Sprintf("the front matter has more than %d KB", maxHeader>>10)}
	}
	if fields, ok := strictFields(header, first+1); ok && !hasStrayText(fields) {
		d.fields = fields
		return d, nil
	}
	d.fields = recoverFields(header, first+1)
	return d, nil
}

// headerEnd finds where the lines of the fields end and where the body starts.
func headerEnd(lines []string, first int) (end, after int, unclosed bool) {
	for i := first; i < len(lines); i++ {
		if l := strings.TrimRight(lines[i], " \t"); l == "---" || l == "..." {
			return i, i + 1, false
		}
	}
	// Nobody closed it. The fields go on to the last line that starts a new
	// one, before anything that can only be prose, and to the next blank line.
	seen := map[string]bool{}
	last := first
	for i := first; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "#") || strings.HasPrefix(lines[i], "```") {
			break
		}
		if key, _, ok := keyLine(lines[i]); ok && !seen[key] {
			seen[key] = true
			last = i
		}
	}
	for end = last; end < len(lines); end++ {
		if strings.TrimSpace(lines[end]) == "" || strings.HasPrefix(lines[end], "#") {
			break
		}
	}
	return end, end, true
}

// strictFields reads lines as YAML, of which the first is the given line of
// its file. It is not ok if they are not the YAML of one mapping.
func strictFields(lines []string, first int) ([]field, bool) {
	s := strings.Join(lines, "\n")
	if strings.Count(s, "[")+strings.Count(s, "{")+strings.Count(s, "- ")+strings.Count(s, "? ") > maxNesting {
		return nil, false
	}
	file, err := parser.ParseBytes([]byte(s), 0)
	if err != nil || len(file.Docs) != 1 {
		return nil, false
	}
	n, ok := yamlNode(file.Docs[0].Body, first-1)
	return n.fields, ok && n.kind == isObject
}

// hasStrayText says whether a part of the description was taken for fields:
// example dialogues after it have the same form.
func hasStrayText(fields []field) bool {
	for i, f := range fields {
		switch strings.ToLower(f.key) {
		case "context", "user", "human", "assistant", "commentary", "example", "examples":
			if i > 0 && fields[i-1].key == "description" {
				return true
			}
		}
	}
	return false
}

// yamlNode makes a node of YAML; offset is added to its lines. What only YAML
// has, aliases above all, is not ok: no definition needs it, and an alias can
// stand for a text of any size.
func yamlNode(n ast.Node, offset int) (node, bool) {
	switch n := n.(type) {
	case nil:
		return node{}, false
	case *ast.TagNode:
		return yamlNode(n.Value, offset)
	case *ast.AnchorNode:
		return yamlNode(n.Value, offset)
	case *ast.MappingValueNode:
		return yamlMapping([]*ast.MappingValueNode{n}, offset)
	case *ast.MappingNode:
		return yamlMapping(n.Values, offset)
	case *ast.SequenceNode:
		out := node{kind: isList}
		out.place(n.GetToken(), offset)
		for _, v := range n.Values {
			item, ok := yamlNode(v, offset)
			if !ok {
				return node{}, false
			}
			out.items = append(out.items, item)
		}
		return out, true
	}
	out, ok := yamlScalar(n)
	out.place(n.GetToken(), offset)
	return out, ok
}

func yamlMapping(values []*ast.MappingValueNode, offset int) (node, bool) {
	out := node{kind: isObject}
	for _, v := range values {
		if v.Key.IsMergeKey() {
			return node{}, false
		}
		value, ok := yamlNode(v.Value, offset)
		if !ok {
			return node{}, false
		}
		at := node{}
		at.place(v.Key.GetToken(), offset)
		f := field{key: v.Key.GetToken().Value, line: at.line, col: at.col, value: value}
		out.fields = append(out.fields, f)
	}
	if len(out.fields) > 0 {
		out.line, out.col = out.fields[0].line, out.fields[0].col
	}
	return out, true
}

func yamlScalar(n ast.Node) (node, bool) {
	switch n := n.(type) {
	case *ast.NullNode:
		return node{}, true
	case *ast.StringNode:
		return node{kind: isText, text: n.Value}, true
	case *ast.LiteralNode:
		return node{kind: isText, text: n.Value.Value}, true
	case *ast.BoolNode:
		return node{kind: isTruth, text: strings.ToLower(n.GetToken().Value)}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return node{kind: isNumber, text: n.GetToken().Value}, true
	}
	return node{}, false
}

func (n *node) place(t *token.Token, offset int) {
	if t != nil && t.Position != nil {
		n.line, n.col = t.Position.Line+offset, t.Position.Column
	}
}
