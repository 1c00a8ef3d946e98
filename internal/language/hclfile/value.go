package hclfile

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// measure returns the size of v, and charges for going through it. A value
// above [maxValue] or nested deeper than [maxNesting] is reported. Sharing does
// not count: a value that holds another twice is twice as large, as its text
// would be.
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

// spend takes the size of v from left, and stops when that is used up.
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

// representable reports whether a number lies in the range of a float64, or
// nearly so. Others can take gigabytes to write out.
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

// convertTo converts v as HCL does, and refuses to read a long text as a number.
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

// typeOf names the type of v for messages.
func typeOf(v cty.Value) string {
	if v == cty.NilVal || v.IsNull() {
		return "null"
	}
	return nameOf(v.Type())
}

// nameOf names a type for messages, with its article.
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
