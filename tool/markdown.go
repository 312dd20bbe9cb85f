package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// A markdown writes HTML as Markdown while it reads it, tag by tag. It builds
// no tree: its time and space are in proportion to the page, whatever that is,
// and it ends with its ctx. White space, line ends and marks are held back
// until a text follows, so nothing empty is written.
type markdown struct {
	base  *url.URL // that relative addresses start from
	title string

	out    bytes.Buffer
	breaks int    // line ends to write before the next text
	space  bool   // a space, if there is no line end
	lead   string // what begins the next line: "- ", "## "
	marks  []mark // of the inline elements that are open
	lists  []listLevel
	quotes int

	row      row
	firstRow bool // no row of the table has begun

	skip   string // element of which nothing is shown
	nested int    // elements of that name inside of it

	code *strings.Builder // of the pre element that is open
	lang string           // in which it is written
}

// A mark is what stands around the text of an inline element.
type mark struct {
	tag, open, close string
	written          bool
}

// A listLevel is a list that is open; next is the number of its next item.
type listLevel struct {
	ordered bool
	next    int
}

// A row is the row of a table that is being read.
type row struct {
	open    bool
	first   bool // it is the first of its table
	cells   int
	heads   int  // cells that are headings
	borders int  // ends of cells to write before the next text
	written bool // something of it is
}

// How far Markdown is nested; what goes deeper is written as if it did not.
const (
	maxMarks  = 32
	maxLists  = 10
	maxQuotes = 5
)

// text is what has been written.
func (m *markdown) text() string { return strings.TrimSpace(m.out.String()) + "\n" }

// full says that there is enough of it.
func (m *markdown) full() bool { return m.out.Len() > maxPage }

// convert reads a page to its end.
func (m *markdown) convert(ctx context.Context, r io.Reader) error {
	z := html.NewTokenizer(r)
	for !m.full() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			m.endCode()
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("read the HTML: %w", err)
			}
			return nil
		case html.TextToken:
			m.words(z.Token().Data)
		case html.StartTagToken:
			m.start(z.Token())
		case html.SelfClosingTagToken:
			m.start(z.Token())
		case html.EndTagToken:
			name, _ := z.TagName()
			m.end(string(name))
		}
	}
	return nil
}

// words takes a text of the page.
func (m *markdown) words(text string) {
	switch {
	case m.skip == "title" && m.title == "":
		title := strings.Join(strings.Fields(text), " ")
		m.title = title[:prefix([]byte(title), 300)]
	case m.skip != "":
	case m.code != nil:
		m.code.WriteString(text)
	default:
		rest := text
		for rest != "" {
			word := strings.TrimLeft(rest, " \t\r\n\f")
			m.space = m.space || len(word) < len(rest)
			end := strings.IndexAny(word, " \t\r\n\f")
			if end < 0 {
				end = len(word)
			}
			if end > 0 {
				m.write(word[:end])
			}
			rest = word[end:]
		}
	}
}

// write puts a word out, and in front of it what was held back.
func (m *markdown) write(word string) {
	switch {
	case m.out.Len() == 0 || m.breaks > 0:
		for i := range m.breaks {
			if m.out.Len() == 0 {
				break
			}
			m.out.WriteByte('\n')
			if i+1 < m.breaks {
				m.out.WriteString(strings.TrimRight(m.quotePrefix(), " "))
			}
		}
		m.out.WriteString(m.linePrefix(m.lead != ""))
		m.out.WriteString(m.lead)
		if m.row.borders > 0 {
			m.out.WriteString(strings.Repeat("| ", m.row.borders))
		}
	case m.row.borders > 0:
		m.out.WriteString(strings.Repeat(" |", m.row.borders) + " ")
	case m.space:
		m.out.WriteByte(' ')
	}
	for i := range m.marks {
		if !m.marks[i].written {
			m.out.WriteString(m.marks[i].open)
			m.marks[i].written = true
		}
	}
	m.out.WriteString(word)
	m.breaks, m.space, m.lead, m.row.borders = 0, false, "", 0
	m.row.written = true
}

func (m *markdown) quotePrefix() string { return strings.Repeat("> ", min(m.quotes, maxQuotes)) }

// linePrefix is what a line begins with inside of quotes and lists. A line
// that begins an item stands further left than those that go on with it.
func (m *markdown) linePrefix(begins bool) string {
	levels := m.lists[:min(len(m.lists), maxLists)]
	if begins && len(levels) > 0 {
		levels = levels[:len(levels)-1]
	}
	indent := 0
	for _, l := range levels {
		indent += 2
		if l.ordered {
			indent++
		}
	}
	return m.quotePrefix() + strings.Repeat(" ", indent)
}

// block ends the line, and with two breaks the paragraph. At the beginning of
// an item or a cell there is nothing to end.
func (m *markdown) block(breaks int) {
	if m.lead != "" || m.row.borders > 0 || m.row.open && !m.row.written {
		return
	}
	m.breaks = max(m.breaks, breaks)
}

// endRow ends the row of a table. One of headings alone gets a line below.
func (m *markdown) endRow() {
	r := m.row
	m.row = row{}
	if !r.written {
		return
	}
	m.breaks = max(m.breaks, 1)
	if r.first && r.heads == r.cells && r.cells > 1 {
		m.breaks = 1
		m.write(strings.TrimSuffix(strings.Repeat("--- | ", min(r.cells, 1000)), " | "))
		m.row = row{}
		m.breaks = 1
	}
}

// endCode writes the text of a pre element.
func (m *markdown) endCode() {
	if m.code == nil {
		return
	}
	code := strings.TrimRight(strings.TrimPrefix(m.code.String(), "\n"), "\n\r ")
	m.code = nil
	if code == "" {
		return
	}
	fence := "```"
	for strings.Contains(code, fence) && len(fence) < 20 {
		fence += "`"
	}
	m.write(fence + m.lang)
	between := "\n" + m.linePrefix(false)
	for line := range strings.SplitSeq(code, "\n") {
		m.out.WriteString(between + strings.TrimSuffix(line, "\r"))
		if m.full() {
			return
		}
	}
	m.out.WriteString(between + fence)
	m.breaks = 2
}
