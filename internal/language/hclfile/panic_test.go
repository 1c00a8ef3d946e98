package hclfile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// A block written as an argument, or with wrong labels, is reported and causes no panic.
func TestDecode_misshapenBlocks(t *testing.T) {
	for kind, top := range fileRules {
		problems := map[Kind]func(Source) diag.List{ToolsKind: toolProblems, ConfigKind: configProblems}[Kind(kind)]
		var nest func(before, after string, r *rule, depth int)
		nest = func(before, after string, r *rule, depth int) {
			for _, name := range r.blocks {
				inner := r.block(name)
				for labels := range 4 {
					open := name + strings.Repeat(` "x"`, labels)
					for _, body := range []string{open + " {\n}", open + " {\n}\n" + open + " {\n}"} {
						if found := problems(Source{Path: "x.hcl", Bytes: []byte(before + body + after)}); labels != len(inner.labels) && !found.HasErrors() {
							t.Errorf("%s%s%s: no error", before, body, after)
						}
					}
				}
				for _, value := range []string{"1", `"x"`, "{}"} {
					if found := problems(Source{Path: "x.hcl", Bytes: fmt.Appendf(nil, "%s%s = %s%s", before, name, value, after)}); inner != nil && r.arg(name) == nil && !found.HasErrors() {
						t.Errorf("%s%s = %s%s: no error", before, name, value, after)
					}
				}
				if depth < 4 {
					nest(before+name+strings.Repeat(` "x"`, len(inner.labels))+" {\n", "\n}"+after, inner, depth+1)
				}
			}
		}
		nest("", "\n", top, 0)
	}
}

// A panic of the decoder is reported at the file.
func TestDecode_panic(t *testing.T) {
	f := &File{path: "x.hcl"} // has no body, so both decoders panic
	_, problems := f.Decode(Scope{})
	_, more := f.DecodeConfig(nil)
	for _, found := range []diag.List{problems, more} {
		if len(found) != 1 || found[0].Code != codeInternal || found[0].Range.File != "x.hcl" || !found.HasErrors() {
			t.Errorf("got %v", found)
		}
		if !strings.Contains(found[0].Stack, ".Decode") || strings.Contains(found[0].String(), "goroutine") {
			t.Errorf("stack %q of %v", found[0].Stack, found)
		}
	}
}

// panickingExpression panics in evaluation, and in Variables if noVariables is set.
type panickingExpression struct {
	hclsyntax.Expression
	noVariables bool
}

func (x panickingExpression) Variables() []hcl.Traversal {
	if x.noVariables {
		return x.Expression.Variables()
	}
	return nil
}

// A panic is reported at the file of the local, and the other locals have values.
func TestJoinLocals_panic(t *testing.T) {
	good, problems := Parse(Source{Path: "good.hcl", Bytes: []byte("locals {\n  a = 1\n  c = local.b\n}\n")}, ToolsKind)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, noVariables := range []bool{false, true} {
		bad := &File{path: "bad.hcl", locals: []Local{{Name: "b", expr: panickingExpression{noVariables: noVariables}}}}
		locals, problems := JoinLocals([]*File{good, bad}, nil, false)
		if len(problems) == 0 {
			t.Fatal("no error")
		}
		for _, d := range problems {
			if d.Code != codeInternal || d.Range.File != "bad.hcl" {
				t.Errorf("got %v", d)
			}
		}
		if !locals.values["a"].ok || locals.values["b"].ok || locals.values["c"].ok {
			t.Errorf("got %v", locals.values)
		}
	}
}

// Each exported function that returns diagnostics defers reportPanic.
func TestEntryPoints_reportPanics(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !returnsList(f) {
				continue
			}
			reports := false
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if d, ok := n.(*ast.DeferStmt); ok {
					if called, ok := d.Call.Fun.(*ast.SelectorExpr); ok {
						reports = reports || called.Sel.Name == "reportPanic"
					}
				}
				return true
			})
			if !reports {
				t.Errorf("%s: %s does not defer reportPanic", path, f.Name)
			}
		}
	}
}

// returnsList reports whether f has a result of type diag.List.
func returnsList(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	for _, r := range f.Type.Results.List {
		if s, ok := r.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "List" {
			return true
		}
	}
	return false
}
