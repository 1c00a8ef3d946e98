package hclfile

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
)

// evaluator evaluates expressions. It walks the syntax tree itself instead of using HCL, so
// that the work of a file and the size of each value are bounded, and the messages are ours. A
// failed value has been reported; callers skip it.
type evaluator struct {
	f        *File
	scope    Scope
	problems *diag.List
	// workLeft is the remaining budget for expressions. exhausted means that exceeding it was
	// reported.
	workLeft  int
	exhausted bool
	// compared counts the names compared for suggestions.
	compared int
	// reads collects the dependencies of the current definition besides its text.
	reads *hasher
	// sensitive: a sensitive value was read, so messages must not contain values.
	sensitive bool
	// allowSensitive: the result is not shown to anyone, so it may be sensitive.
	allowSensitive bool
	vars           map[string]cty.Value
	// loops holds the variables of the enclosing for expressions.
	loops []binding
	// items holds the current item of each splat expression.
	items map[*hclsyntax.AnonSymbolExpr]cty.Value
}

type binding struct {
	name  string
	value cty.Value
}

func newEvaluator(f *File, s Scope, problems *diag.List) *evaluator {
	return &evaluator{f: f, scope: s, problems: problems, workLeft: baseWork + workPerByte*min(len(f.source), MaxHCL)}
}

// askNull is the advice for a null value.
const askNull = "test the value first: value == null ? other : value"

// fail reports an error and returns no value.
func (e *evaluator) fail(code string, where hcl.Range, summary, detail string) (cty.Value, bool) {
	if len(*e.problems) < maxCollected {
		*e.problems = append(*e.problems, diag.Diagnostic{Code: code, Range: e.f.rng(where), Summary: summary, Detail: detail})
	}
	return cty.NilVal, false
}

// charge subtracts cost from the budget. It reports an exceeded budget.
func (e *evaluator) charge(cost int, where hcl.Range) bool {
	if cost <= e.workLeft {
		e.workLeft -= cost
		return true
	}
	if !e.exhausted {
		e.fail("too-large", where, "the expressions of this file are too expensive", "make the values smaller, or move them into a data file")
	}
	e.exhausted = true
	e.workLeft /= 2 // so that rejected requests are not free
	return false
}

// value evaluates x. It returns false if it fails.
func (e *evaluator) value(x hclsyntax.Expression) (cty.Value, bool) {
	if !e.charge(stepCost, x.Range()) {
		return cty.NilVal, false
	}
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return e.literal(x)
	case *hclsyntax.TemplateExpr:
		return e.template(x)
	case *hclsyntax.TemplateWrapExpr:
		return e.value(x.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		return e.joined(x)
	case *hclsyntax.ParenthesesExpr:
		return e.value(x.Expression)
	case *hclsyntax.TupleConsExpr:
		return e.tuple(x)
	case *hclsyntax.ObjectConsExpr:
		return e.object(x)
	case *hclsyntax.ScopeTraversalExpr:
		return e.reference(x)
	case *hclsyntax.RelativeTraversalExpr:
		v, ok := e.value(x.Source)
		if !ok {
			return v, false
		}
		return e.traverse(v, x.Traversal)
	case *hclsyntax.FunctionCallExpr:
		return e.call(x)
	case *hclsyntax.ConditionalExpr:
		return e.conditional(x)
	case *hclsyntax.BinaryOpExpr:
		return e.binary(x)
	case *hclsyntax.UnaryOpExpr:
		return e.unary(x)
	case *hclsyntax.IndexExpr:
		return e.indexed(x)
	case *hclsyntax.ForExpr:
		return e.loop(x)
	case *hclsyntax.SplatExpr:
		return e.splat(x)
	case *hclsyntax.AnonSymbolExpr:
		v, ok := e.items[x]
		return v, ok
	default:
		return e.fail("expression", x.Range(), "this kind of expression is not supported", "see Expressions in the manual of the tool language")
	}
}

func (e *evaluator) literal(x *hclsyntax.LiteralValueExpr) (cty.Value, bool) {
	if x.Val.Type() == cty.Number && !representable(x.Val) {
		return e.fail("bad-value", x.SrcRange, "the number is outside the range of a 64-bit float", "write a smaller number")
	}
	return x.Val, x.Val.IsKnown()
}

func (e *evaluator) template(x *hclsyntax.TemplateExpr) (cty.Value, bool) {
	if h := e.f.heredocAt(x); h != nil {
		if !e.charge(h.end-h.start, x.SrcRange) {
			return cty.NilVal, false
		}
		return cty.StringVal(h.text(e.f).Body()), true
	}
	if len(x.Parts) == 1 {
		if l, ok := x.Parts[0].(*hclsyntax.LiteralValueExpr); ok && l.Val.Type() == cty.String {
			return l.Val, true
		}
	}
	var b strings.Builder
	ok := true
	for _, part := range x.Parts {
		v, good := e.value(part)
		if good {
			good = e.appendText(&b, v, part.Range())
		}
		ok = ok && good
	}
	return cty.StringVal(b.String()), ok
}

// appendText adds v to the text of a template.
func (e *evaluator) appendText(b *strings.Builder, v cty.Value, where hcl.Range) bool {
	if v.IsNull() {
		e.fail("wrong-type", where, "null cannot be part of a string", askNull)
		return false
	}
	s, err := convertTo(v, cty.String)
	if err != nil {
		e.fail("wrong-type", where, fmt.Sprintf("%s cannot be part of a string", typeOf(v)), "use jsonencode() to convert it to text")
		return false
	}
	text := s.AsString()
	if !e.charge(textCost(text), where) {
		return false
	}
	if b.Len()+len(text) > maxValue {
		e.tooLarge(where)
		return false
	}
	b.WriteString(text)
	return true
}

// textCost is the cost of a string of s.
func textCost(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return wideText * len(s)
		}
	}
	return len(s)
}

func (e *evaluator) tooLarge(where hcl.Range) {
	e.fail("too-large", where, fmt.Sprintf("the value is larger than %d KiB, contains more than %d values, or is nested deeper than %d levels", maxValue>>10, maxValue/nodeSize, maxNesting),
		"put data into a file that a script imports")
}

// joined evaluates a template's %{for}.
func (e *evaluator) joined(x *hclsyntax.TemplateJoinExpr) (cty.Value, bool) {
	v, ok := e.value(x.Tuple)
	if !ok {
		return v, false
	}
	var b strings.Builder
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if !e.appendText(&b, item, x.Range()) {
			return v, false
		}
	}
	return cty.StringVal(b.String()), true
}

func (e *evaluator) tuple(x *hclsyntax.TupleConsExpr) (cty.Value, bool) {
	items := make([]cty.Value, len(x.Exprs))
	all := true
	for i, item := range x.Exprs {
		v, ok := e.value(item)
		items[i], all = v, all && ok
	}
	if !all {
		return cty.NilVal, false
	}
	return cty.TupleVal(items), true
}

func (e *evaluator) object(x *hclsyntax.ObjectConsExpr) (cty.Value, bool) {
	attrs := make(map[string]cty.Value, len(x.Items))
	all := true
	for _, item := range x.Items {
		name, okName := e.key(item.KeyExpr)
		v, ok := e.value(item.ValueExpr)
		if _, again := attrs[name]; okName && again {
			e.fail("duplicate", item.KeyExpr.Range(), fmt.Sprintf("the key %s occurs twice in this object", e.show(name)), "keep one of them")
			okName = false
		}
		if all = all && ok && okName; all {
			attrs[name] = v
		}
	}
	if !all {
		return cty.NilVal, false
	}
	return cty.ObjectVal(attrs), true
}

// key evaluates the key of an object item. A bare word is a string.
func (e *evaluator) key(x hclsyntax.Expression) (string, bool) {
	if k, ok := x.(*hclsyntax.ObjectConsKeyExpr); ok {
		if word := hcl.ExprAsKeyword(k.Wrapped); word != "" && !k.ForceNonLiteral {
			return word, true
		}
		if t, ok := k.Wrapped.(*hclsyntax.ScopeTraversalExpr); ok && !k.ForceNonLiteral {
			e.fail("expression", t.SrcRange, "this key is not a word or a string",
				"put it in quotes, or in parentheses if it is a reference")
			return "", false
		}
		x = k.Wrapped
	}
	v, ok := e.value(x)
	if !ok {
		return "", false
	}
	return e.text(v, x.Range())
}

// text converts v to a string, for keys.
func (e *evaluator) text(v cty.Value, where hcl.Range) (string, bool) {
	s, err := convertTo(v, cty.String)
	if err != nil || s.IsNull() {
		e.fail("wrong-type", where, fmt.Sprintf("a key must be a string, not %s", typeOf(v)), "put the text in quotes")
		return "", false
	}
	return s.AsString(), true
}

// heredocAt returns the literal heredoc of x, or nil.
func (f *File) heredocAt(x *hclsyntax.TemplateExpr) *heredoc {
	if len(f.heredocs) == 0 || x.SrcRange.Filename != "" {
		return nil
	}
	at := x.SrcRange.Start.Byte
	i := sort.Search(len(f.heredocs), func(i int) bool { return f.heredocs[i].cut >= at })
	if i < len(f.heredocs) && f.heredocs[i].cut == at {
		return &f.heredocs[i]
	}
	return nil
}
