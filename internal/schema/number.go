package schema

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// A numberRule is what a number must be. Its limits are int64, float64, *big.Int
// or nil for none; a value is one of the first three.
type numberRule struct {
	min, max, above, below, step any
}

func (n *numberRule) check(v any, r *run) bool {
	ok := true
	if n.min != nil && compare(v, n.min) < 0 {
		ok = r.refuse(func() string { return fmt.Sprintf(atLeast, numeral(n.min)) })
	}
	if n.above != nil && compare(v, n.above) <= 0 {
		ok = r.refuse(func() string { return fmt.Sprintf(greaterThan, numeral(n.above)) })
	}
	if n.max != nil && compare(v, n.max) > 0 {
		ok = r.refuse(func() string { return fmt.Sprintf(atMost, numeral(n.max)) })
	}
	if n.below != nil && compare(v, n.below) >= 0 {
		ok = r.refuse(func() string { return fmt.Sprintf(lessThan, numeral(n.below)) })
	}
	if n.step != nil && !n.multiple(v, r) {
		ok = r.refuse(func() string { return fmt.Sprintf(multipleOf, numeral(n.step)) })
	}
	return ok
}

// numeral returns a number in digits.
func numeral(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *big.Int:
		return v.String()
	}
	return ""
}

// compare compares two numbers exactly.
func compare(a, b any) int {
	_, one := a.(*big.Int)
	_, other := b.(*big.Int)
	if one || other {
		return compareBig(a, b)
	}
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
		return -compareFloat(b.(float64), a)
	case float64:
		if b, ok := b.(int64); ok {
			return compareFloat(a, b)
		}
		return cmp.Compare(a, b.(float64))
	}
	return 0
}

// compareBig compares two numbers of which one is larger than an int64.
func compareBig(a, b any) int {
	x, y := rational(a), rational(b)
	if x == nil || y == nil {
		return 0
	}
	return x.Cmp(y)
}

// edge is the least float64 above every int64.
const edge = 1 << 63

func compareFloat(f float64, i int64) int {
	switch {
	case f >= edge:
		return 1
	case f < -edge:
		return -1
	}
	// A float64 with a fraction is small enough for int64 to be exact as one.
	if whole := math.Trunc(f); whole != f {
		return cmp.Compare(f, float64(i))
	}
	return cmp.Compare(int64(f), i)
}

// costOfMultiple is how many steps it takes to divide numbers with fractions.
const costOfMultiple = 120

func (n *numberRule) multiple(v any, r *run) bool {
	_, whole := n.step.(int64)
	if _, is := v.(int64); (!is || !whole) && !r.step(costOfMultiple) {
		return false
	}
	return multiple(v, n.step)
}

// multiple reports whether v is an integer times step. Numbers with a fraction
// are taken as the shortest decimals that stand for them, so that 0.3 is a
// multiple of 0.1.
func multiple(v, step any) bool {
	if v, ok := v.(int64); ok {
		if step, ok := step.(int64); ok {
			return v%step == 0
		}
	}
	a, b := rational(v), rational(step)
	if a == nil || b == nil || b.Sign() == 0 {
		return false
	}
	return new(big.Rat).Quo(a, b).IsInt()
}

// rational returns the number as the decimal that it is written as.
func rational(v any) *big.Rat {
	r, ok := new(big.Rat).SetString(numeral(v))
	if !ok {
		return nil
	}
	return r
}
