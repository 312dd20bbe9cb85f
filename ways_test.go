package troupe_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// Every function that runs an agent, or makes the first record of one, is named
// by a way of the table that tests of permissions run over; and the table names
// no other.
func TestEveryWayToRunAnAgentHasACaller(t *testing.T) {
	var named, found []string
	for _, w := range troupetest.Ways() {
		named = append(named, "runs "+w.Runs, "starts "+w.Starts)
	}
	goFiles(t, func(file string, parsed *ast.File, _ *token.FileSet) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "troupetest/") {
			return
		}
		for _, d := range parsed.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if ofTroupe(n.Fun, "Run") {
						found = append(found, "runs "+functionName(parsed, d))
					}
				case *ast.CompositeLit:
					if ofTroupe(n.Type, "Started") && len(n.Elts) > 0 {
						found = append(found, "starts "+functionName(parsed, d))
					}
				}
				return true
			})
		}
	})
	for _, f := range found {
		if !slices.Contains(named, f) {
			t.Errorf("%s, which no way in troupetest.Ways names: add a row there and to each table of callers", f)
		}
	}
	for _, n := range named {
		if !slices.Contains(found, n) {
			t.Errorf("a way in troupetest.Ways says that an agent %s, and it does not", n)
		}
	}
}

// ofTroupe reports whether an expression is a name of package troupe.
func ofTroupe(e ast.Expr, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "troupe"
}

// functionName is package.Type.Method or package.Function of a declaration.
func functionName(file *ast.File, d ast.Decl) string {
	fn, ok := d.(*ast.FuncDecl)
	if !ok {
		return file.Name.Name
	}
	name := file.Name.Name + "."
	if fn.Recv != nil {
		typ := fn.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if id, ok := typ.(*ast.Ident); ok {
			name += id.Name + "."
		}
	}
	return name + fn.Name.Name
}
