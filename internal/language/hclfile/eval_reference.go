package hclfile

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// reference evaluates var.x, local.x and the variables of for expressions.
func (e *evaluator) reference(x *hclsyntax.ScopeTraversalExpr) (cty.Value, bool) {
	root := x.Traversal.RootName()
	for _, b := range slices.Backward(e.loops) {
		if b.name == root {
			return e.traverse(b.value, x.Traversal[1:])
		}
	}
	switch root {
	case "var", "local":
	case "secret":
		return e.fail("misplaced-secret", x.SrcRange, "a secret cannot be used here",
			"use secret.NAME only in a header value, a dsn, the env of a program, or client_secret")
	default:
		e.unknownRoot(x, root)
		return cty.NilVal, false
	}
	name, where, ok := e.member(x, root)
	if !ok {
		return cty.NilVal, false
	}
	v, ok := e.lookup(root, name, where)
	if !ok {
		return v, false
	}
	return e.traverse(v, x.Traversal[2:])
}

// fileName returns the file name that a reference resembles, or "".
func fileName(t hcl.Traversal) string {
	if len(t) != 2 {
		return ""
	}
	extension, ok := t[1].(hcl.TraverseAttr)
	if !ok || !slices.Contains([]string{"js", "mjs", "ts", "mts", "json"}, extension.Name) {
		return ""
	}
	return t.RootName() + "." + extension.Name
}

// celNames are names that only scripts or CEL know, during a call.
var celNames = []string{"args", "input", "principal", "agent", "call", "source", "tool", "now", "params", "event", "result", "content"}

func (e *evaluator) unknownRoot(x *hclsyntax.ScopeTraversalExpr, root string) {
	known := []string{"var", "local"}
	for _, b := range e.loops {
		known = append(known, b.name)
	}
	detail := diag.DidYouMean(root, known)
	if word := strings.ToLower(root); word == "true" || word == "false" || word == "null" {
		detail = "write " + word
	}
	if detail == "" && len(x.Traversal) == 1 {
		detail = fmt.Sprintf("if it is text, put it in quotes: %q", root)
	}
	if detail == "" {
		detail = "write var.NAME or local.NAME"
	}
	if file := fileName(x.Traversal); file != "" {
		detail = fmt.Sprintf("if it is a file, put its name in quotes: %q", file)
	}
	if slices.Contains(celNames, root) {
		detail = fmt.Sprintf("use %s only in scripts and CEL: this expression is evaluated when files are loaded", root)
	}
	e.fail("unknown-name", x.SrcRange, fmt.Sprintf("there is no value %q", root), detail)
}

// member returns the name in var.NAME or local.NAME.
func (e *evaluator) member(x *hclsyntax.ScopeTraversalExpr, root string) (string, hcl.Range, bool) {
	if len(x.Traversal) > 1 {
		switch step := x.Traversal[1].(type) {
		case hcl.TraverseAttr:
			return step.Name, attrName(step), true
		case hcl.TraverseIndex:
			if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
				return step.Key.AsString(), step.SrcRange, true
			}
		}
	}
	e.fail("expression", x.SrcRange, fmt.Sprintf("%q is not a value by itself", root), fmt.Sprintf("name one: %s.NAME", root))
	return "", hcl.Range{}, false
}

// attrName returns the range of a step's name without its dot.
func attrName(step hcl.TraverseAttr) hcl.Range {
	r := step.SrcRange
	r.Start.Byte = r.End.Byte - len(step.Name)
	return r
}

func (e *evaluator) lookup(root, name string, where hcl.Range) (cty.Value, bool) {
	if root == "local" {
		return e.local(name, where)
	}
	v, known := e.scope.Vars[name]
	if !known {
		e.unknown("variable", name, where, maps.Keys(e.scope.Vars),
			fmt.Sprintf("declare it in mcpd.hcl: variable %q { … }", name))
		return cty.NilVal, false
	}
	e.read("var", name, string(v.Value))
	if v.Sensitive && !e.checkSensitive(where, fmt.Sprintf("the variable %q is sensitive", name)) {
		return cty.NilVal, false
	}
	if cached, ok := e.vars[name]; ok {
		return cached, true
	}
	if len(v.Value) == 0 {
		return cty.NilVal, false // the declaration has the error
	}
	var value ctyjson.SimpleJSONValue
	if err := value.UnmarshalJSON(v.Value); err != nil {
		return e.fail("bad-value", where, fmt.Sprintf("the variable %q has no valid value", name), "give it a value of its type")
	}
	if e.vars == nil {
		e.vars = map[string]cty.Value{}
	}
	e.vars[name] = value.Value
	return value.Value, true
}

func (e *evaluator) local(name string, where hcl.Range) (cty.Value, bool) {
	l := e.scope.Locals
	if l == nil {
		l = &Locals{}
	}
	found, known := l.values[name]
	if !known {
		e.unknown("local value", name, where, maps.Keys(l.values),
			fmt.Sprintf("declare it in a file of this directory: locals { %s = … }", name))
		return cty.NilVal, false
	}
	e.read("local", name, string(found.hash[:]))
	if found.sensitive && !e.checkSensitive(where, fmt.Sprintf("the local value %q contains a sensitive variable", name)) {
		return cty.NilVal, false
	}
	return found.value, found.ok
}

// checkSensitive records that a sensitive value is read. It reports a value that would be shown
// to others; why says why it is sensitive.
func (e *evaluator) checkSensitive(where hcl.Range, why string) bool {
	if !e.allowSensitive {
		e.fail("misplaced-secret", where, why+" and cannot be used here",
			"this value is shown to others; use it in a header value, in the input of a test, or as vars.NAME in a script")
		return false
	}
	e.sensitive = true
	return true
}

func (e *evaluator) unknown(what, name string, where hcl.Range, known iter.Seq[string], otherwise string) {
	if e.scope.Incomplete {
		return
	}
	detail := e.didYouMean(name, known)
	if detail == "" {
		detail = otherwise
	}
	e.fail("unknown-name", where, fmt.Sprintf("there is no %s %q", what, name), detail)
}

// didYouMean suggests a known name, until the file has used up its comparisons.
func (e *evaluator) didYouMean(name string, known iter.Seq[string]) string {
	if e.sensitive {
		return "" // the names may be sensitive
	}
	var names []string
	for n := range known {
		if e.compared++; e.compared > maxCompared {
			return ""
		}
		names = append(names, n)
	}
	return diag.DidYouMean(name, names)
}

// read records that the current definition depends on a value.
func (e *evaluator) read(kind, name, value string) {
	if e.reads != nil {
		definition.WriteField(e.reads, kind)
		definition.WriteField(e.reads, name)
		definition.WriteField(e.reads, value)
	}
}

// traverse follows .name and [key] from v.
func (e *evaluator) traverse(v cty.Value, steps hcl.Traversal) (cty.Value, bool) {
	for _, step := range steps {
		var ok bool
		switch step := step.(type) {
		case hcl.TraverseAttr:
			v, ok = e.attr(v, step.Name, attrName(step))
		case hcl.TraverseIndex:
			v, ok = e.index(v, step.Key, step.SrcRange)
		}
		if !ok {
			return cty.NilVal, false
		}
	}
	return v, true
}

func (e *evaluator) attr(v cty.Value, name string, where hcl.Range) (cty.Value, bool) {
	t := v.Type()
	switch {
	case v.IsNull():
		e.fail("wrong-type", where, fmt.Sprintf("null has no attribute %s", e.show(name)), askNull)
	case t.IsObjectType() && t.HasAttribute(name):
		return v.GetAttr(name), true
	case t.IsMapType() && v.HasIndex(cty.StringVal(name)).True():
		return v.Index(cty.StringVal(name)), true
	case t.IsObjectType() || t.IsMapType():
		known := func(yield func(string) bool) {
			for it := v.ElementIterator(); it.Next(); {
				if k, _ := it.Element(); !yield(k.AsString()) {
					return
				}
			}
		}
		e.fail("unknown-name", where, fmt.Sprintf("the object has no attribute %s", e.show(name)), cmp.Or(e.didYouMean(name, known), "write an existing attribute, or use lookup(object, \"name\", default)"))
	default:
		e.fail("wrong-type", where, fmt.Sprintf("%s has no attribute %s", typeOf(v), e.show(name)), "only objects have attributes; for a list, use [0] for an item, or [*].name for each")
	}
	return cty.NilVal, false
}

func (e *evaluator) indexed(x *hclsyntax.IndexExpr) (cty.Value, bool) {
	v, ok := e.value(x.Collection)
	k, okKey := e.value(x.Key)
	if !ok || !okKey {
		return cty.NilVal, false
	}
	return e.index(v, k, x.BracketRange)
}

func (e *evaluator) index(v, key cty.Value, where hcl.Range) (cty.Value, bool) {
	t := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown() || key.IsNull() || !key.IsKnown():
		return e.fail("wrong-type", where, "null cannot be indexed or be an index", askNull)
	case t.IsObjectType() || t.IsMapType():
		name, ok := e.text(key, where)
		if !ok {
			return cty.NilVal, false
		}
		return e.attr(v, name, where)
	case t.IsTupleType() || t.IsListType():
		return e.item(v, key, where)
	default:
		return e.fail("wrong-type", where, fmt.Sprintf("%s cannot be indexed", typeOf(v)), "only lists and objects have items; remove the brackets")
	}
}

func (e *evaluator) item(v, key cty.Value, where hcl.Range) (cty.Value, bool) {
	n, err := convertTo(key, cty.Number)
	if err != nil || !representable(n) {
		return e.fail("wrong-type", where, fmt.Sprintf("an index of a list must be a number, not %s", typeOf(key)), "count from 0, as in list[0]")
	}
	i, accuracy := n.AsBigFloat().Int64()
	if length := v.LengthInt(); accuracy != big.Exact || i < 0 || i >= int64(length) {
		return e.fail("bad-value", where, fmt.Sprintf("the list has no item with this index; its length is %d", length), "indexes count from 0")
	}
	return v.Index(cty.NumberIntVal(i)), true
}
