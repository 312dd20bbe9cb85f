package tool

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func asMarkdown(t testing.TB, page string) *markdown {
	t.Helper()
	base, err := url.Parse("https://x.org/dir/page?q=1")
	if err != nil {
		t.Fatal(err)
	}
	m := &markdown{base: base}
	if err := m.convert(t.Context(), strings.NewReader(page)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarkdown(t *testing.T) {
	for _, test := range []struct{ name, html, want string }{
		{"paragraphs", "<p>one\n  two</p><p>three", "one two\n\nthree"},
		{"nothing empty", "<h2> </h2><p></p><b> </b><a href=/x></a><ul><li></ul><pre>\n</pre><p>x", "x"},
		{"headings", "<h1>A <b>b</b></h1>text<h3>C</h3>", "# A **b**\n\ntext\n\n### C"},
		{"inline", "a <strong> b </strong>c <em>d</em>, <code>e f</code><del>g</del>", "a **b** c *d*, `e f`~~g~~"},
		{"links", `<a href="/a?b=c">up</a> <a href=sub/>down</a> <a href="https://y.org/(z)">out</a> <a href="#x">here</a> <a href="javascript:x()">run</a>`,
			"[up](https://x.org/a?b=c) [down](https://x.org/dir/sub/) [out](https://y.org/%28z%29) here run"},
		{"links are not nested", "<a href=/a>a<a href=/b>b</a>", "[a](https://x.org/a)[b](https://x.org/b)"},
		{"base", "<base href=//y.org/d/><a href=a>a</a>", "[a](https://y.org/d/a)"},
		{"pictures", `<img src=a.png><img alt="a  cat" src=a.png> <img alt=dot src="data:image/png;base64,AAAA">`, "![a cat](https://x.org/dir/a.png) ![dot]"},
		{"lists", "<ul><li>a<li>b<ol><li>c</li><li><p>d</p><p>e</p></ol><li>f</ul>g", "- a\n- b\n  1. c\n  2. d\n\n     e\n\n- f\n\ng"},
		{"code", "<p>x<pre class='a language-go'>\nfunc a() {\n\tb()\n}\n</pre>y", "x\n\n```go\nfunc a() {\n\tb()\n}\n```\n\ny"},
		{"code with fence", "<pre><code class=language-md>```\na <b>b</b>&lt;</code></pre>", "````md\n```\na b<\n````"},
		{"code in a list", "<ul><li>x<pre>a\nb</pre></ul>", "- x\n\n  ```\n  a\n  b\n  ```"},
		{"code that does not end", "<pre>a", "```\na\n```"},
		{"quote", "<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"},
		{"table", "<table><tr><th>a<th>b<tr><td><p>1</p><td>2<tr><td><td>x</table>y", "a | b\n--- | ---\n1 | 2\n| x\n\ny"},
		{"layout by tables", "<table><tr><td><table><tr><td>a</td></tr><tr><td>b</td></tr></table></td></tr></table>", "a\nb"},
		{"breaks and rules", "a<br>b<hr>c", "a\nb\n\n---\n\nc"},
		{"not shown", "a<script>if (1<2) x()</script><style>p{}</style><svg><title>t</title><svg></svg>q</svg><select><option>o</select><template>z</template><!-- c -->b", "ab"},
		{"self-closing", "a<svg/>b<br/>c", "ab\nc"},
		{"entities and scripts", "caf&eacute; 中文 &amp; עברית", "café 中文 & עברית"},
		{"broken", "</ul></b></a></table><td>a</p><li>b<", "a\n\n- b<"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want+"\n", asMarkdown(t, test.html).text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := asMarkdown(t, "<head><title>\n A  page </title><svg><title>no</title></svg>").title; got != "A page" {
		t.Errorf("title %q", got)
	}
}

// Pages made to be slow or large take time and space in proportion.
func TestMarkdownOfHostilePages(t *testing.T) {
	const n = 1 << 20
	fill := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	for name, page := range map[string]string{
		"marks": fill("[*_`"), "open": fill("<"), "deep": fill("<div>"), "bold": fill("<b>x"), "lists": fill("<ul><li>x"), "quotes": fill("<blockquote>x"),
		"links": fill("<a href=x>y"), "cells": "<table><tr>" + fill("<td>"), "cells with text": "<table><tr>" + fill("<td>x"), "rows": "<table>" + fill("<tr><td>x<td>y"),
		"attributes": "<p " + fill("a=b ") + ">x", "comments": fill("x<!-- -->"), "breaks": fill("<br>x"), "code": "<ul><li><pre>" + fill("\n x"), "fences": "<pre>" + fill("`"),
		"hidden": fill("<svg>"), "words": fill("x "), "spans": "<table><tr><td colspan=100000 rowspan=100000>x" + fill("<tr><td>y"),
	} {
		t.Run(name, func(t *testing.T) {
			m := asMarkdown(t, page)
			if size := len(m.text()); size > 8*n {
				t.Errorf("%d MB of a page of 1 MB", size>>20)
			}
			if len(m.marks) > maxMarks { // each word looks at all of them
				t.Errorf("%d marks are open", len(m.marks))
			}
		})
	}
	long := strings.Repeat("x", 1900)
	m := asMarkdown(t, "<base href=/"+long+"/>"+strings.Repeat("<a href=a>b</a>", 1<<20))
	if size := m.out.Len(); size > maxPage+1<<20 || !m.full() {
		t.Errorf("%d MB written", size>>20)
	}
}

func TestMarkdownEndsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	m := &markdown{base: &url.URL{Scheme: "https", Host: "x.org"}}
	if err := m.convert(ctx, strings.NewReader("<p>x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"<p>a<b>b", "<table><tr><th>a<td>b", "<ul><li><pre>x</pre>", "<a href=x>y</a><svg></svg><title>t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if m := asMarkdown(t, page); strings.Contains(m.text(), "\n\n\n") && !strings.Contains(page, "<pre") && !strings.Contains(strings.ToLower(page), "<pre") {
			t.Errorf("%q leaves a gap:\n%q", page, m.text())
		}
	})
}
