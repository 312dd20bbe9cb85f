// Picture draws what `troupe demo` prints as a picture of a terminal, for the
// README. It reads the output on stdin and writes an SVG to stdout:
//
//	troupe demo | go run ./doc/picture > doc/demo.svg
//
// The same output always gives the same picture. The text is that of the demo;
// the picture leaves out the random part of its directory, cuts lines that are
// too long, and adds the colours that the demo has on a terminal.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The terminal: columns, and sizes in pixels.
const (
	columns    = 106
	cellWidth  = 7.8
	lineHeight = 17
	margin     = 18
)

// The colours, by what they are for.
const (
	paper = "#1b1f27"
	ink   = "#d7dae0"
	faint = "#7d8590"
	good  = "#7ec699"
	bad   = "#f08d8d"
	lead  = "#ffffff"
	other = "#6cc5d9"
	call  = "#c9a26d"
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// A run is a piece of a line in one colour.
type run struct{ text, colour string }

// draw writes the picture of the lines of in to out.
func draw(in io.Reader, out io.Writer) error {
	var lines [][]run
	for scanner := bufio.NewScanner(in); ; {
		if !scanner.Scan() {
			if err := scanner.Err(); err != nil {
				return fmt.Errorf("read the demo's output: %w", err)
			}
			break
		}
		lines = append(lines, colour(plain(scanner.Text())))
	}
	if len(lines) == 0 {
		return fmt.Errorf("nothing on stdin; pipe the output of troupe demo into it")
	}
	if _, err := io.WriteString(out, svg(lines)); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

var randomPart = regexp.MustCompile(`troupe-demo-\d+`)

// plain is a line as the picture has it: without tabs, and not too long.
func plain(line string) string {
	line = randomPart.ReplaceAllString(strings.ReplaceAll(line, "\t", "    "), "troupe-demo")
	if utf8.RuneCountInString(line) > columns {
		line = string([]rune(line)[:columns-1]) + "…"
	}
	return line
}

// event is a line of the timeline: time, indentation, agent, what happened.
var event = regexp.MustCompile(`^( *\d+\.\d\ds  )( *)(\S+ +)(.*)$`)

func colour(line string) []run {
	m := event.FindStringSubmatch(line)
	if m == nil {
		return []run{{line, ofPlain(line)}}
	}
	name := lead
	if m[2] != "" {
		name = other
	}
	return []run{{m[1] + m[2], faint}, {m[3], name}, {m[4], ofEvent(m[4])}}
}

func ofEvent(what string) string {
	switch {
	case strings.HasPrefix(what, "✓"):
		return good
	case strings.HasPrefix(what, "✗"), strings.HasPrefix(what, "denied"):
		return bad
	case strings.HasPrefix(what, "→"):
		return call
	case strings.HasPrefix(what, "says"):
		return ink
	}
	return faint
}

func ofPlain(line string) string {
	switch {
	case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "green:"), strings.HasPrefix(line, "ok "):
		return good
	case strings.HasPrefix(line, "-"), strings.HasPrefix(line, "RED:"):
		return bad
	case strings.HasPrefix(line, "$ "):
		return lead
	}
	return ink
}

func svg(lines [][]run) string {
	var b strings.Builder
	width, height := columns*cellWidth+2*margin, len(lines)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">`+"\n", width, height, width, height)
	b.WriteString("<title>What troupe demo prints</title>\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	b.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">` + "\n")
	for i, line := range lines {
		column := 0
		for _, r := range line {
			if strings.TrimSpace(r.text) != "" {
				size := float64(utf8.RuneCountInString(r.text)) * cellWidth
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" textLength="%.1f" xml:space="preserve" style="white-space:pre">%s</text>`+"\n",
					margin+float64(column)*cellWidth, margin+(i+1)*lineHeight-4, r.colour, size, html.EscapeString(r.text))
			}
			column += utf8.RuneCountInString(r.text)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}
