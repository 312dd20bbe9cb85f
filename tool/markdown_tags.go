package tool

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// start takes the beginning of an element.
func (m *markdown) start(t html.Token) {
	switch {
	case m.skip != "":
		if t.Data == m.skip && t.Type == html.StartTagToken {
			m.nested++
		}
		return
	case isHidden(t):
		m.skip, m.nested = t.Data, 0
		return
	case t.Data == "code" && m.code != nil:
		m.lang = language(t)
		return
	case t.Data == "br" && m.code != nil:
		m.code.WriteByte('\n')
		return
	case m.code != nil && t.Data != "pre":
		return
	}
	if open, close := inlineMark(t.Data); open != "" {
		m.open(mark{tag: t.Data, open: open, close: close})
		return
	}
	switch t.Data {
	case "a":
		m.link(attribute(t, "href"))
	case "img":
		m.picture(attribute(t, "alt"), attribute(t, "src"))
	case "base":
		if to, err := m.base.Parse(attribute(t, "href")); err == nil && len(to.String()) <= longestURL {
			m.base = to
		}
	case "br":
		m.breaks = max(m.breaks, 1)
	case "hr":
		m.block(2)
		m.write("---")
		m.block(2)
	case "table", "tr", "td", "th":
		m.startTable(t.Data)
	case "ul", "ol", "li":
		m.startList(t.Data)
	default:
		m.startBlock(t)
	}
}

// startBlock takes the beginning of an element that stands on lines of its own.
func (m *markdown) startBlock(t html.Token) {
	m.block(lineEnds(t.Data))
	switch t.Data {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		m.lead += heading(t.Data)
	case "blockquote":
		m.quotes++
	case "pre":
		m.endCode()
		m.code, m.lang = &strings.Builder{}, language(t)
	}
}

func (m *markdown) startTable(tag string) {
	switch tag {
	case "table":
		m.block(2)
		m.firstRow = true
	case "tr":
		m.endRow()
		m.block(1)
		m.row = row{open: true, first: m.firstRow}
		m.firstRow = false
	default:
		if m.row.cells > 0 {
			m.row.borders++
			m.breaks, m.space = 0, false
			if !m.row.written { // all cells until now are empty
				m.breaks = 1
			}
		}
		m.row.cells++
		if tag == "th" {
			m.row.heads++
		}
	}
}

func (m *markdown) startList(tag string) {
	if tag != "li" {
		m.block(1)
		if len(m.lists) == 0 {
			m.block(2)
		}
		m.lists = append(m.lists, listLevel{ordered: tag == "ol", next: 1})
		return
	}
	m.lead = ""
	m.block(1)
	m.lead = "- "
	if n := len(m.lists); n > 0 && m.lists[n-1].ordered {
		m.lead = fmt.Sprintf("%d. ", m.lists[n-1].next)
		m.lists[n-1].next++
	}
}

// end takes the end of an element.
func (m *markdown) end(tag string) {
	switch {
	case m.skip == tag && m.nested > 0:
		m.nested--
		return
	case m.skip == tag:
		m.skip = ""
		return
	case m.skip != "" || m.code != nil && tag != "pre":
		return
	}
	switch tag {
	case "table":
		m.endRow()
		m.block(2)
	case "tr":
		m.endRow()
	case "ul", "ol":
		m.lead = ""
		m.lists = m.lists[:max(len(m.lists)-1, 0)]
		m.block(1)
		if len(m.lists) == 0 {
			m.block(2)
		}
	case "li":
		m.lead = ""
		m.block(1)
	case "pre":
		m.endCode()
	case "blockquote":
		m.block(2)
		m.quotes = max(m.quotes-1, 0)
	case "h1", "h2", "h3", "h4", "h5", "h6":
		m.lead = strings.TrimSuffix(m.lead, heading(tag))
		m.block(2)
	default:
		m.close(tag)
		m.block(lineEnds(tag))
	}
}

// open takes the beginning of an inline element.
func (m *markdown) open(k mark) {
	if len(m.marks) < maxMarks {
		m.marks = append(m.marks, k)
	}
}

// close takes the end of an inline element, if it is one.
func (m *markdown) close(tag string) {
	for i := len(m.marks) - 1; i >= 0; i-- {
		if k := m.marks[i]; k.tag == tag {
			m.marks = append(m.marks[:i], m.marks[i+1:]...)
			if k.written {
				m.out.WriteString(k.close)
			}
			return
		}
	}
}

// longestURL is the length in bytes up to which addresses are repeated.
const longestURL = 2000

// absolute is the whole address that href means, or "" if it leads nowhere.
func (m *markdown) absolute(href string) string {
	if href = strings.TrimSpace(href); href == "" || href[0] == '#' || len(href) > longestURL {
		return ""
	}
	u, err := m.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(u.String())
}

func (m *markdown) link(href string) {
	m.close("a") // links do not nest
	if to := m.absolute(href); to != "" {
		m.open(mark{tag: "a", open: "[", close: "](" + to + ")"})
	}
}

func (m *markdown) picture(alt, src string) {
	alt = strings.Join(strings.Fields(alt), " ")
	if alt == "" {
		return
	}
	m.write("![" + alt + "]")
	if to := m.absolute(src); to != "" {
		m.out.WriteString("(" + to + ")")
	}
}

// isHidden says that of an element nothing is shown.
func isHidden(t html.Token) bool {
	switch t.Data {
	case "script", "style", "title", "noscript", "iframe", "noembed", "noframes", "textarea", "plaintext": // read to their end as they are
		return true
	case "template", "svg", "select", "datalist", "canvas", "audio", "video", "object":
		return t.Type == html.StartTagToken
	}
	return false
}

// inlineMark is what Markdown has around the text of an inline element.
func inlineMark(tag string) (open, close string) {
	switch tag {
	case "b", "strong":
		return "**", "**"
	case "i", "em":
		return "*", "*"
	case "del", "s":
		return "~~", "~~"
	case "code", "kbd", "samp", "tt":
		return "`", "`"
	}
	return "", ""
}

// lineEnds is the number of line ends around an element; 0 is an inline one.
func lineEnds(tag string) int {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "dl", "figure", "section", "article", "main", "nav", "header", "footer", "aside", "details", "form", "fieldset":
		return 2
	case "div", "dt", "dd", "figcaption", "summary", "address", "body", "caption", "center", "legend", "hgroup", "search", "option", "head":
		return 1
	}
	return 0
}

func heading(tag string) string { return strings.Repeat("#", int(tag[1]-'0')) + " " }

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// language is the one that code is written in, as its class says.
func language(t html.Token) string {
	for class := range strings.FieldsSeq(attribute(t, "class")) {
		if lang, ok := strings.CutPrefix(class, "language-"); ok && len(lang) < 20 && !strings.Contains(lang, "`") {
			return lang
		}
	}
	return ""
}
