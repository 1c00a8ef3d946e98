package hclfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Scope is what the expressions of a file may refer to.
type Scope struct {
	// Vars are the declared variables with their values.
	Vars map[string]Variable
	// Locals is the namespace of the folder; nil when it has no locals.
	Locals *Locals
	// Secrets are the names of the declared secrets.
	Secrets []string
	// Incomplete says that variables, locals and secrets may be declared that are
	// not known, since a file has a syntax error. An unknown one is not reported.
	Incomplete bool
	// ReadFile returns the bytes of a file, its path cleaned and relative to
	// the tools root. It refuses to leave the folder. Nil means that no file
	// can be read.
	ReadFile func(path string) ([]byte, error)
}

// fileText computes file("x") as a string.
func (e *evaluator) fileText(x *hclsyntax.FunctionCallExpr, args []cty.Value, ok bool) (cty.Value, bool) {
	if !ok {
		return cty.NilVal, false
	}
	_, content, ok := e.openFile(x, args)
	if !ok {
		return cty.NilVal, false
	}
	if !e.charge(len(content), x.Range()) {
		return cty.NilVal, false
	}
	return cty.StringVal(string(content)), true
}

// openFile reads the file that a call of file() names. The path is relative to
// the folder of the file that holds the call.
func (e *evaluator) openFile(x *hclsyntax.FunctionCallExpr, args []cty.Value) (name string, content []byte, ok bool) {
	where := x.Range()
	if len(args) != 1 || args[0].Type() != cty.String || args[0].IsNull() {
		e.fail("wrong-type", where, "file() takes one argument, a path", "write file(\"x.js\")")
		return "", nil, false
	}
	where = x.Args[0].Range()
	written := args[0].AsString()
	if name, content, ok = e.readFile(written, where); !ok {
		return "", nil, false
	}
	if len(content) > maxValue || !utf8.Valid(content) {
		e.fail("bad-value", where, fmt.Sprintf("the file %s is larger than %d KiB or is not text in UTF-8", e.show(written), maxValue>>10), "make it smaller, and save it as UTF-8")
		return "", nil, false
	}
	return name, content, true
}

// readFile reads the file at a path that is relative to the folder of the file
// that names it. What the file holds becomes part of the definition.
func (e *evaluator) readFile(written string, where hcl.Range) (name string, content []byte, ok bool) {
	name = path.Join(e.f.dir, written)
	if strings.Contains(written, `\`) {
		e.fail("bad-path", where, "a path has no backslash", "write "+e.show(strings.ReplaceAll(written, `\`, "/")))
		return "", nil, false
	}
	if !isInside(written, name) {
		e.fail("bad-path", where, "the path leaves the tools folder", "write a path relative to the folder of this file, with forward slashes")
		return "", nil, false
	}
	if e.scope.ReadFile == nil {
		e.fail("bad-path", where, "file() cannot be used here", "call it in the definition that uses the file")
		return "", nil, false
	}
	content, err := e.scope.ReadFile(name)
	if err != nil {
		summary, detail := fmt.Sprintf("the file %s cannot be read", e.show(written)), clip(err.Error())
		if errors.Is(err, fs.ErrNotExist) {
			summary = fmt.Sprintf("there is no file %s in the tools folder", e.show(name))
			detail = "correct the path, which is relative to the folder of this file, or make the file"
		}
		e.fail("unreadable-file", where, summary, detail)
		return "", nil, false
	}
	sum := sha256.Sum256(content)
	e.read("file", name, string(sum[:]))
	return name, content, true
}

// isInside reports whether a path stays in the tools folder once it is joined
// to the folder it is relative to.
func isInside(written, joined string) bool {
	return written != "" && !path.IsAbs(written) && !strings.ContainsAny(written, "\\\x00") &&
		joined != ".." && !strings.HasPrefix(joined, "../") && joined != "."
}

// secretName returns the name in secret.NAME.
func secretName(x hclsyntax.Expression) (string, hcl.Range, bool) {
	t, ok := x.(*hclsyntax.ScopeTraversalExpr)
	if !ok || t.Traversal.RootName() != "secret" || len(t.Traversal) != 2 {
		return "", hcl.Range{}, false
	}
	step, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return "", hcl.Range{}, false
	}
	return step.Name, attrName(step), true
}
