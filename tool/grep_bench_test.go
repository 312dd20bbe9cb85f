package tool

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// codeTree makes a tree of source files, some of them ignored: as many as
// TROUPE_BENCH_FILES says, else a few thousand.
func codeTree(b *testing.B) string {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("TROUPE_BENCH_FILES"))
	if err != nil {
		n = 4000
	}
	dir := b.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return if err nil string context request response value index buffer length public static void const let import from class self def print range append close open read write error handler server client message")
	files := map[string]string{".git/HEAD": "", ".gitignore": "*.o\n*.log\nbuild/\n/dist\n!keep.log\nnode_modules/\n.cache\n*.tmp\n__pycache__/\ntarget/\n"}
	for i := range n {
		var text strings.Builder
		for line := range 40 + rnd.IntN(160) {
			text.WriteString(strings.Repeat("\t", rnd.IntN(4)))
			for range 3 + rnd.IntN(7) {
				text.WriteString(words[rnd.IntN(len(words))] + " ")
			}
			if line == 7 && i%100 == 0 {
				text.WriteString("SessionManager_42 := 1")
			}
			text.WriteString("\n")
		}
		ext := []string{".go", ".ts", ".py", ".md", ".log"}[i%5]
		files[fmt.Sprintf("pkg%d/sub%d/file%d%s", i%37, i%11, i, ext)] = text.String()
	}
	writeTree(b, dir, files)
	return dir
}

// BenchmarkGrep searches for a word, a pattern with a word in it, and patterns
// without any, and lets rg do the same.
func BenchmarkGrep(b *testing.B) {
	dir := codeTree(b)
	for _, c := range []struct{ name, pattern string }{
		{"word", "SessionManager"},
		{"pattern", `Session[A-Z]\w+_\d+`},
		{"alternatives", `SessionM|zebra|quokka`},
		{"class", `[A-Z][a-z]+[A-Z][a-z]+_[0-9]{2}`},
		{"boundary", `\b[a-z]+\s:=\s[0-9]\b`},
		{"fold", `(?i)sessionmanager`},
		{"none", `nosuchword`},
	} {
		b.Run(c.name+"/Grep", func(b *testing.B) {
			for b.Loop() {
				searchCall(b, &Grep{}, dir, map[string]any{"pattern": c.pattern, "head_limit": 0})
			}
		})
		b.Run(c.name+"/rg", func(b *testing.B) {
			rg := troupetest.Need(b, "rg")
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), rg, "--no-config", "-l", "-e", c.pattern, ".")
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil && len(out) > 0 {
					b.Fatalf("rg: %v: %s", err, out)
				}
			}
		})
	}
}

// BenchmarkGlob finds files by name.
func BenchmarkGlob(b *testing.B) {
	dir := codeTree(b)
	for b.Loop() {
		searchCall(b, &Glob{}, dir, map[string]any{"pattern": "**/*.go"})
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		b.Fatal(err)
	}
}
