package hclfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func (e *evaluator) call(x *hclsyntax.FunctionCallExpr) (cty.Value, bool) {
	if x.Name == "file" {
		_, _, content, ok := e.openFile(x)
		if !ok || !e.charge(len(content), x.Range()) {
			return cty.NilVal, false
		}
		return cty.StringVal(string(content)), true
	}
	args, ok := e.arguments(x)
	f, known := functions[x.Name]
	if !known {
		return e.fail("unknown-name", x.NameRange, fmt.Sprintf("there is no function %q", x.Name), functionHint(x.Name))
	}
	if !ok || !e.convertArguments(x, f.impl, args) {
		return cty.NilVal, false
	}
	size, ok := e.measure(cty.TupleVal(args), x.Range())
	if !ok || f.cost != nil && !e.charge(f.cost(args, size), x.Range()) {
		return cty.NilVal, false
	}
	v, err := f.impl.Call(args)
	if err != nil {
		e.callFailed(x, err)
		return cty.NilVal, false
	}
	_, ok = e.measure(v, x.Range())
	return v, ok
}

func functionHint(name string) string {
	switch name {
	case "range", "setproduct":
		return "functions with results much larger than their arguments are not supported"
	case "timestamp", "uuid", "bcrypt", "env", "templatefile":
		return "use another function: functions must be pure"
	}
	return diag.DidYouMean(name, functionNames())
}

// arguments evaluates the arguments of a call; f(list...) passes each item.
func (e *evaluator) arguments(x *hclsyntax.FunctionCallExpr) ([]cty.Value, bool) {
	args := make([]cty.Value, 0, len(x.Args))
	all := true
	for _, a := range x.Args {
		v, ok := e.value(a)
		args, all = append(args, v), all && ok
	}
	if !all || !x.ExpandFinal || len(args) == 0 {
		return args, all
	}
	last := args[len(args)-1]
	if t := last.Type(); last.IsNull() || !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		e.fail("wrong-type", x.Args[len(args)-1].Range(), fmt.Sprintf("only a list can be spread with ..., not %s", typeOf(last)), "remove the ..., or put a list before it")
		return nil, false
	}
	if n := last.LengthInt(); !e.charge(n, x.Range()) {
		return nil, false
	}
	return append(args[:len(args)-1], last.AsValueSlice()...), true
}

// convertArguments converts the arguments to the parameter types of the function.
func (e *evaluator) convertArguments(x *hclsyntax.FunctionCallExpr, f function.Function, args []cty.Value) bool {
	params, rest := f.Params(), f.VarParam()
	if len(args) < len(params) || len(args) > len(params) && rest == nil {
		atLeast := ""
		if rest != nil {
			atLeast = "at least "
		}
		e.fail("wrong-type", x.Range(), fmt.Sprintf("%s() takes %s%s, not %d", x.Name, atLeast, count(len(params), "argument"), len(args)), signature(x.Name, params, rest))
		return false
	}
	for i, a := range args {
		param := rest
		if i < len(params) {
			param = &params[i]
		}
		where := argRange(x, i)
		if a.IsNull() && !param.AllowNull {
			e.fail("wrong-type", where, fmt.Sprintf("an argument of %s() must not be null", x.Name), askNull)
			return false
		}
		if !e.conversionCost(a, param.Type, where) {
			return false
		}
		v, err := convertTo(a, param.Type)
		if err != nil {
			e.fail("wrong-type", where, fmt.Sprintf("%s() needs %s here, not %s", x.Name, nameOf(param.Type), typeOf(a)), signature(x.Name, params, rest))
			return false
		}
		args[i] = v
	}
	return true
}

// signature returns how to call a function, with the names of its parameters.
func signature(name string, params []function.Parameter, rest *function.Parameter) string {
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	if rest != nil {
		names = append(names, rest.Name+", …")
	}
	return fmt.Sprintf("write %s(%s)", name, strings.Join(names, ", "))
}

// conversionCost charges for converting a list of mixed types to one type.
func (e *evaluator) conversionCost(v cty.Value, t cty.Type, where hcl.Range) bool {
	size, ok := e.measure(v, where)
	if ok && t.IsCollectionType() && t.ElementType() == cty.DynamicPseudoType {
		return e.charge(unifyCost([]cty.Value{v}, size), where)
	}
	return ok
}

// argRange returns the range of argument i, which may be spread.
func argRange(x *hclsyntax.FunctionCallExpr, i int) hcl.Range {
	if len(x.Args) == 0 {
		return x.Range()
	}
	return x.Args[min(i, len(x.Args)-1)].Range()
}

func (e *evaluator) callFailed(x *hclsyntax.FunctionCallExpr, err error) {
	where := x.Range()
	var arg function.ArgError
	if errors.As(err, &arg) {
		where = argRange(x, arg.Index)
	}
	detail := ""
	if !e.sensitive {
		detail = clip(err.Error())
	}
	e.fail("bad-value", where, fmt.Sprintf("%s() failed", x.Name), detail)
}

// show quotes computed text, unless it may contain a sensitive value.
func (e *evaluator) show(s string) string {
	if e.sensitive {
		return "(sensitive)"
	}
	return strconv.Quote(clip(s))
}

// clip truncates untrusted text to one short line.
func clip(s string) string {
	const longest = 200
	for i, r := range s {
		if r == '\n' || i >= longest {
			return s[:i] + "…"
		}
	}
	return s
}

// count returns "1 argument", "2 arguments".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Scope holds everything that the expressions of a file may refer to.
type Scope struct {
	// Vars are the declared variables with their values.
	Vars map[string]definition.Variable
	// Locals is the namespace of the directory; nil if it has no locals.
	Locals *Locals
	// Secrets are the names of the declared secrets.
	Secrets []string
	// Incomplete means that there may be unknown variables, locals and secrets, because a file
	// has a syntax error. An unknown name is not reported.
	Incomplete bool
	// ReadFile returns the content of a file. The path is clean and relative to the tools root.
	// It must reject paths outside of the root. If nil, no file can be read.
	ReadFile func(path string) ([]byte, error)
}

// openFile reads the file of a file() call. written is the path as written, relative to the
// directory of the calling file; name is relative to the tools root.
func (e *evaluator) openFile(x *hclsyntax.FunctionCallExpr) (written, name string, content []byte, ok bool) {
	args, ok := e.arguments(x)
	if !ok {
		return "", "", nil, false
	}
	if len(args) != 1 || args[0].Type() != cty.String || args[0].IsNull() {
		e.fail("wrong-type", x.Range(), "file() takes one argument, a path", "write file(\"x.js\")")
		return "", "", nil, false
	}
	where := x.Args[0].Range()
	written = args[0].AsString()
	if name, content, ok = e.readFile(written, where); ok && (len(content) > maxValue || !utf8.Valid(content)) {
		e.fail("bad-value", where, fmt.Sprintf("the file %s is larger than %d KiB or not UTF-8", e.show(written), maxValue>>10), "make it smaller, and save it as UTF-8")
		ok = false
	}
	return written, name, content, ok
}

// readFile reads a file by a path relative to the directory of the file that refers to it. Its
// content becomes part of the definition.
func (e *evaluator) readFile(written string, where hcl.Range) (name string, content []byte, ok bool) {
	name = path.Join(e.f.dir, written)
	if strings.Contains(written, `\`) {
		e.fail("bad-path", where, "the path has a backslash", "write "+e.show(strings.ReplaceAll(written, `\`, "/")))
		return "", nil, false
	}
	if !definition.IsInside(written, name) {
		e.fail("bad-path", where, "the path leaves the tools directory", "write a path relative to the directory of this file, with forward slashes")
		return "", nil, false
	}
	if e.scope.ReadFile == nil {
		e.fail("bad-path", where, "file() cannot be used here", "use it in the definition that needs the file")
		return "", nil, false
	}
	content, err := e.scope.ReadFile(name)
	if err != nil {
		summary, detail := fmt.Sprintf("the file %s cannot be read", e.show(written)), clip(err.Error())
		if errors.Is(err, fs.ErrNotExist) {
			summary = fmt.Sprintf("there is no file %s in the tools directory", e.show(name))
			detail = "create the file, or correct the path, which is relative to the directory of this file"
		}
		e.fail("unreadable-file", where, summary, detail)
		return "", nil, false
	}
	sum := sha256.Sum256(content)
	e.read("file", name, string(sum[:]))
	return name, content, true
}

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
