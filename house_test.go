package troupe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/troupe-sh/troupe"

// mayImport says which packages of ours each package may import, "/" being the
// root. A package that is not here may not exist; doc/design.md explains the rooms.
var mayImport = map[string]string{
	// 0: words and values
	"/":                   "",
	"/internal/statefile": "/internal/failpoint",
	"/internal/failpoint": "",
	"/proc":               "/internal/statefile /internal/failpoint",
	"/internal/gitignore": "",
	"/internal/schema":    "/",
	"/internal/secret":    "",
	"/store":              "/internal/statefile /internal/failpoint",
	"/internal/fence":     "",
	// 1: parts that Run plugs in
	"/model":           "/ /internal/failpoint",
	"/model/anthropic": "/ /model",
	"/model/openai":    "/ /model",
	"/model/script":    "/",
	"/tool":            "/ /proc /internal/gitignore /internal/schema /internal/secret /internal/statefile /internal/failpoint",
	"/permission":      "/",
	"/session":         "/ /internal/statefile /internal/failpoint",
	"/ask":             "/",
	"/hook":            "/",
	"/compact":         "/ /internal/failpoint /internal/fence",
	"/budget":          "/",
	"/task":            "/ /store /internal/statefile /internal/failpoint",
	"/mail":            "/ /store",
	// 2: what users have written down, and what others do
	"/config": "/ /proc /permission /internal/statefile",
	"/forge":  "/ /model /internal/fence /internal/schema /internal/secret",
	// 3: agents that start agents
	"/delegate": "/ /permission /budget /store /mail /task /internal/schema /internal/fence",
	// 4: what puts them together
	"/host": "/ /internal/secret /proc /model /model/anthropic /model/openai /model/script /tool /permission /session /ask /budget /store /mail /task /hook /compact /config /delegate /forge /internal/statefile /internal/failpoint /internal/fence",
	// 5: faces
	"/internal/prefix":  "/ /session",
	"/internal/cli":     "/ /session /internal/prefix /ask /task /delegate",
	"/internal/line":    "/ /permission /session /ask /host /task /delegate /internal/cli",
	"/internal/control": "/ /session /ask /hook /host /task /internal/cli",
	// 6: the command
	"/cmd/troupe": "*",
	// beside
	"/troupetest":               "/ /store",
	"/doc/picture":              "",
	"/internal/bench":           "/ /proc /permission",
	"/model/internal/catalogue": "",
}

// fences are the packages that alone may import something from outside.
var fences = map[string]string{
	"os/exec":                  "/proc",
	"testing":                  "/troupetest",
	"github.com/goccy/go-yaml": "/config",
	"github.com/anthropics/":   "/model/anthropic",
	"github.com/openai/":       "/model/openai",
	"charm.land/catwalk":       "/model/internal/catalogue",
	"github.com/spf13/":        "/cmd/troupe",
	"golang.org/x/term":        "/internal/line",
	"mvdan.cc/sh":              "/permission",
	"github.com/aymanbagabas/": "/tool",
	"golang.org/x/net/html":    "/tool",
}

type goPackage struct {
	ImportPath, Doc, Dir string
	Imports              []string
	GoFiles              []string
}

func packages(t *testing.T) (out []goPackage) {
	t.Helper()
	text, err := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,Dir,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}

// room is the name of a package in the tables.
func room(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, module)
	if rest == "" {
		rest = "/"
	}
	return rest, ok
}

func TestRoomsAndDoors(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		name, _ := room(p.ImportPath)
		seen[name] = true
		if p.Doc == "" {
			t.Errorf("%s has no package comment", name)
		}
		may, known := mayImport[name]
		if !known {
			t.Errorf("%s is not in mayImport; add it there and to doc/design.md", name)
		}
		for _, imp := range p.Imports {
			if other, ours := room(imp); ours && may != "*" && !slices.Contains(strings.Fields(may), other) {
				t.Errorf("%s must not import %s", name, other)
			}
			for what, where := range fences {
				if (imp == what || strings.HasPrefix(imp, strings.TrimSuffix(what, "/")+"/")) && name != where {
					t.Errorf("%s imports %s, which belongs into %s", name, imp, where)
				}
			}
		}
	}
	for name := range mayImport {
		if !seen[name] {
			t.Errorf("mayImport has %s, which does not exist", name)
		}
	}
}

// goFiles calls f for each Go file of the project, tests included.
func goFiles(t *testing.T, f func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		n++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(path), file, fset)
		return nil
	})
	if err != nil || n < 50 {
		t.Fatalf("saw %d files, %v", n, err)
	}
}

func TestSizes(t *testing.T) {
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if lines := fset.File(file.Pos()).LineCount(); lines > 700 {
			t.Errorf("%s has %d lines, 700 are the most", path, lines)
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				from, to := fset.Position(fn.Pos()), fset.Position(fn.End())
				if n := to.Line - from.Line + 1; n > 80 {
					t.Errorf("%s: %s has %d lines, 80 are the most", from, fn.Name.Name, n)
				}
			}
		}
	})
}

// banned are the calls by which code below the command would take what it must
// be given: a context, time, the environment.
var banned = []string{"context.Background", "context.TODO", "time.Sleep", "time.Now", "os.Getenv", "os.LookupEnv", "os.Environ"}

// excused are the places that may, with the reason.
var excused = map[string]string{
	"batch.go time.Now":      "measures how long a call took; decides nothing",
	"internal/bench/main.go": "is a program that measures",
	"troupetest/network.go":  "is for tests",
	"troupetest/forge.go":    "is for tests",
	"troupetest/need.go":     "is for tests",
	"troupetest/provider.go": "is for tests",
}

func TestNothingIsTakenFromTheAir(t *testing.T) {
	noCalls(t, banned, excused, "cmd/")
}

// Files are renamed and removed by package statefile, which knows that another
// program may be in the way.
func TestFilesAreRenamedAndRemovedInOnePlace(t *testing.T) {
	noCalls(t, []string{"os.Rename", "os.Remove", "os.RemoveAll"}, map[string]string{
		"session/list.go os.Rename": "has another way if it cannot be renamed at once",
		"tool/disk.go os.Rename":    "is inside of statefile.Retry, with a check before each try",
		"internal/bench/main.go":    "is a program that measures",
	}, "internal/statefile/", "troupetest/")
}

// noCalls checks that nothing outside of tests and of the rooms calls any of
// the banned functions, but for the places that are excused.
func noCalls(t *testing.T, banned []string, excused map[string]string, rooms ...string) {
	t.Helper()
	used := map[string]bool{}
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || slices.ContainsFunc(rooms, func(r string) bool { return strings.HasPrefix(path, r) }) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || pkg.Obj != nil { // a variable of that name
				return true
			}
			name := pkg.Name + "." + sel.Sel.Name
			if !slices.Contains(banned, name) {
				return true
			}
			for _, excuse := range []string{path, path + " " + name} {
				if excused[excuse] != "" {
					used[excuse] = true
					return true
				}
			}
			t.Errorf("%s: %s", fset.Position(sel.Pos()), name)
			return true
		})
	})
	for excuse := range excused {
		if !used[excuse] {
			t.Errorf("%s needs no excuse any more", excuse)
		}
	}
}

// Every exported name is documented.
func TestDocumentation(t *testing.T) {
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" {
			return
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if name, doc := specName(s); ast.IsExported(name) && d.Doc == nil && doc == nil {
						t.Errorf("%s: %s has no comment", fset.Position(s.Pos()), name)
					}
				}
			}
		}
	})
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func specName(s ast.Spec) (string, *ast.CommentGroup) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.Name, s.Doc
	case *ast.ValueSpec:
		if s.Doc == nil {
			return s.Names[0].Name, s.Comment
		}
		return s.Names[0].Name, s.Doc
	}
	return "", nil
}

// The project speaks of itself alone: no file names a place where it was made.
func TestNoPathOfAMachine(t *testing.T) {
	words := []string{"/wo" + "rk/main", "/ro" + "ot/", "/tmp/w" + "/"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" && !d.IsDir() { // of a worktree: it names the repository
			return nil
		}
		if d != nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "rapid") {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || d.Name() == ".git" { // a file, where the checkout is a worktree
			return err
		}
		raw, err := os.ReadFile(path)
		for _, word := range words {
			if bytes.Contains(raw, []byte(word)) {
				t.Errorf("%s names %s", path, word)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What the runtime says to a model stands in elements that package fence makes:
// it alone knows what a text must not hold (S86).
func TestFramesAreMadeInOnePlace(t *testing.T) {
	tag := regexp.MustCompile(`</?(notice|hook|environment|file|summary|task-notification|system-reminder|system-message|agent-message|teammate-message|pr-activity|fork-directive)\b`)
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/fence/") || strings.HasPrefix(path, "troupetest/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && tag.MatchString(lit.Value) {
				t.Errorf("%s writes a tag by itself; let fence.Frame or fence.Element do it", fset.Position(lit.Pos()))
			}
			return true
		})
	})
}

// A test is left out in one way only, troupetest.Need, which says so and can be
// told to fail instead.
func TestSkipsGoThroughOneDoor(t *testing.T) {
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Skip") && path != "troupetest/need.go" {
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"t", "tb", "b", "f"}, x.Name) {
					t.Errorf("%s skips by itself", fset.Position(sel.Pos()))
				}
			}
			return true
		})
	})
}
