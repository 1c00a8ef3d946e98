package hclfile

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// measure returns the size of v and charges for traversing it. It reports a value larger than
// [maxValue] or nested deeper than [maxNesting]. A shared value counts each time, as in its
// text.
func (e *evaluator) measure(v cty.Value, where hcl.Range) (int, bool) {
	left := maxValue
	fits := spend(v, &left, maxNesting)
	size := maxValue - max(left, 0)
	if !e.charge(size, where) {
		return 0, false
	}
	if !fits {
		e.tooLarge(where)
	}
	return size, fits
}

// spend subtracts the size of v from left, and stops when that is used up.
func spend(v cty.Value, left *int, depth int) bool {
	if *left -= nodeSize; *left < 0 || depth < 0 {
		return false
	}
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return true
	}
	switch t := v.Type(); {
	case t == cty.String:
		*left -= len(v.AsString())
	case t == cty.Number:
		return representable(v)
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			k, item := it.Element()
			if k.Type() == cty.String {
				*left -= len(k.AsString())
			}
			if !spend(item, left, depth-1) {
				return false
			}
		}
	}
	return *left >= 0
}

// representable reports whether a number is about in the range of a float64. Other numbers can
// take gigabytes as text.
func representable(v cty.Value) bool {
	if v.IsNull() || !v.IsKnown() {
		return true
	}
	f := v.AsBigFloat()
	if f.IsInf() {
		return false
	}
	exponent := f.MantExp(nil)
	return f.Sign() == 0 || exponent < maxExponent && exponent > -maxExponent
}

// convertTo converts v like HCL does, but rejects a long text as a number.
func convertTo(v cty.Value, t cty.Type) (cty.Value, error) {
	if t == cty.Number && v.Type() == cty.String && !v.IsNull() && len(v.AsString()) > maxNumber {
		return cty.NilVal, errors.New("not a number")
	}
	n, err := convert.Convert(v, t)
	if err == nil && t == cty.Number && !representable(n) {
		return cty.NilVal, errors.New("not a number in the range of a 64-bit float")
	}
	return n, err
}

// typeOf returns the type of v for messages.
func typeOf(v cty.Value) string {
	if v == cty.NilVal || v.IsNull() {
		return "null"
	}
	return nameOf(v.Type())
}

// nameOf returns a type with its article for messages.
func nameOf(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "a bool"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	case t.IsObjectType() || t.IsMapType():
		return "an object"
	case t == cty.DynamicPseudoType:
		return "any value"
	default:
		return strings.TrimSpace("a " + t.FriendlyName())
	}
}

// appendJSON appends v as JSON, with object keys in bytewise order. The caller must have
// measured v.
func appendJSON(b []byte, v cty.Value) []byte {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return append(b, "null"...)
	}
	switch t := v.Type(); {
	case t == cty.String:
		return jsontext.AppendString(b, v.AsString())
	case t == cty.Number:
		return appendNumber(b, v)
	case t == cty.Bool && v.True():
		return append(b, "true"...)
	case t == cty.Bool:
		return append(b, "false"...)
	case t.IsObjectType() || t.IsMapType():
		return appendItems(b, v, '{', '}')
	case v.CanIterateElements():
		return appendItems(b, v, '[', ']')
	default:
		return append(b, "null"...)
	}
}

func appendItems(b []byte, v cty.Value, open, end byte) []byte {
	b = append(b, open)
	first := true
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		if !first {
			b = append(b, ',')
		}
		first = false
		if open == '{' {
			b = append(jsontext.AppendString(b, k.AsString()), ':')
		}
		b = appendJSON(b, item)
	}
	return append(b, end)
}

// plainBits is the size up to which an integer is written without exponent.
const plainBits = 512

// appendNumber appends a number: integers exactly, others as the nearest float64.
func appendNumber(b []byte, v cty.Value) []byte {
	f := v.AsBigFloat()
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return strconv.AppendInt(b, n, 10)
	}
	if f.IsInt() && f.MantExp(nil) < plainBits {
		return f.Append(b, 'f', 0)
	}
	n, _ := f.Float64()
	return strconv.AppendFloat(b, n, 'g', -1, 64)
}

// jsonOf evaluates x to JSON. Literal objects keep the declared order of their keys. If visit
// is not nil, it receives the range of every value by JSON pointer.
func (e *evaluator) jsonOf(x hclsyntax.Expression, visit func(pointer string, where hcl.Range)) (json.RawMessage, bool) {
	w := jsonWriter{e: e, visit: visit}
	ok := w.write(x, "")
	if len(w.out) > maxValue {
		e.tooLarge(x.Range())
		return nil, false
	}
	return w.out, ok
}

type jsonWriter struct {
	e     *evaluator
	visit func(pointer string, where hcl.Range)
	out   []byte
}

func (w *jsonWriter) write(x hclsyntax.Expression, pointer string) bool {
	if w.visit != nil {
		w.visit(pointer, x.Range())
	}
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return w.write(x.Expression, pointer)
	case *hclsyntax.TupleConsExpr:
		return w.tuple(x, pointer)
	case *hclsyntax.ObjectConsExpr:
		return w.object(x, pointer)
	}
	v, ok := w.e.value(x)
	if !ok {
		return false
	}
	if _, ok := w.e.measure(v, x.Range()); !ok {
		return false
	}
	w.out = appendJSON(w.out, v)
	return true
}

func (w *jsonWriter) tuple(x *hclsyntax.TupleConsExpr, pointer string) bool {
	all := true
	w.out = append(w.out, '[')
	for i, item := range x.Exprs {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		all = w.write(item, w.child(pointer, i, "")) && all
	}
	w.out = append(w.out, ']')
	return all
}

func (w *jsonWriter) object(x *hclsyntax.ObjectConsExpr, pointer string) bool {
	all := true
	seen := make(map[string]bool, len(x.Items))
	w.out = append(w.out, '{')
	for i, item := range x.Items {
		key, ok := w.e.key(item.KeyExpr)
		if ok && seen[key] {
			w.e.fail("duplicate", item.KeyExpr.Range(), "the key "+w.e.show(key)+" occurs twice in this object", "keep one of them")
			ok = false
		}
		seen[key] = true
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(jsontext.AppendString(w.out, key), ':')
		all = w.write(item.ValueExpr, w.child(pointer, -1, key)) && ok && all
	}
	w.out = append(w.out, '}')
	return all
}

// child returns the pointer of an item or member. Without visit, it builds no pointers.
func (w *jsonWriter) child(pointer string, index int, key string) string {
	switch {
	case w.visit == nil:
		return ""
	case index >= 0:
		return pointer + "/" + strconv.Itoa(index)
	default:
		return pointer + "/" + escapePointer(key)
	}
}

// escapePointer escapes a step of a JSON pointer (RFC 6901 section 3).
func escapePointer(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
