package hclfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/mcpd/mcpd/diag"
)

// call computes a function.
func (e *evaluator) call(x *hclsyntax.FunctionCallExpr) (cty.Value, bool) {
	args, ok := e.arguments(x)
	if x.Name == "file" {
		return e.fileText(x, args, ok)
	}
	f, known := functions[x.Name]
	if !known {
		return e.fail("unknown-name", x.NameRange, fmt.Sprintf("there is no function %q", x.Name), functionHint(x.Name))
	}
	if !ok || !e.fit(x, f.impl, args) {
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
		return "a function whose result can be far larger than its arguments is not offered"
	case "timestamp", "uuid", "bcrypt", "env", "templatefile":
		return "functions are pure: the same file always means the same"
	}
	return diag.DidYouMean(name, functionNames())
}

// arguments computes the arguments of a call; f(list...) passes each item.
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
		e.fail("wrong-type", x.Args[len(args)-1].Range(), fmt.Sprintf("only a list can be spread with ..., not %s", typeOf(last)), "remove the ..., or write a list in front of it")
		return nil, false
	}
	if n := last.LengthInt(); !e.charge(n, x.Range()) {
		return nil, false
	}
	return append(args[:len(args)-1], last.AsValueSlice()...), true
}

// fit converts the arguments to the types of the function's parameters.
func (e *evaluator) fit(x *hclsyntax.FunctionCallExpr, f function.Function, args []cty.Value) bool {
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
		if !e.fitCost(a, param.Type, where) {
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

// signature says how a function is called, by the names of its parameters.
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

// fitCost charges for turning a list of mixed types into one of a common type.
func (e *evaluator) fitCost(v cty.Value, t cty.Type, where hcl.Range) bool {
	size, ok := e.measure(v, where)
	if ok && t.IsCollectionType() && t.ElementType() == cty.DynamicPseudoType {
		return e.charge(unifying([]cty.Value{v}, size), where)
	}
	return ok
}

// argRange returns the range of the argument i, which may have been spread.
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
	e.fail("bad-value", where, fmt.Sprintf("%s() cannot be computed", x.Name), detail)
}

// show quotes text that was computed, unless it may hold a sensitive value.
func (e *evaluator) show(s string) string {
	if e.sensitive {
		return "(sensitive)"
	}
	return strconv.Quote(clip(s))
}

// clip bounds text that others wrote to one short line.
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
