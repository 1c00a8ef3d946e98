package schema

import (
	"math"
	"math/big"
	"testing"
)

// numbers are int64 and float64 values around the places where one of them
// ends or loses precision.
var numbers = []any{
	int64(0), int64(1), int64(-1), int64(1 << 53), int64(1<<53 + 1), int64(-(1<<53 + 1)), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64 - 1),
	0.0, math.Copysign(0, -1), 0.5, -0.5, 1.5, float64(1 << 53), float64(1<<53 + 2), 9.223372036854775807e18, -9.223372036854775808e18, 1e19, -1e19,
	math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 4503599627370495.5,
}

func exact(v any) *big.Rat {
	if i, ok := v.(int64); ok {
		return new(big.Rat).SetInt64(i)
	}
	return new(big.Rat).SetFloat64(v.(float64))
}

func TestNumbersAreComparedExactly(t *testing.T) {
	for _, a := range numbers {
		for _, b := range numbers {
			want := exact(a).Cmp(exact(b))
			if got := compare(a, b); got != want {
				t.Errorf("compare(%T %v, %T %v) = %d, want %d", a, a, b, b, got, want)
			}
			var r run
			first := string(r.spell(a))
			if same := first == string(r.spell(b)); same != (want == 0) {
				t.Errorf("%T %v and %T %v are spelled alike: %t", a, a, b, b, same)
			}
		}
	}
}

func TestMultiplesAreThoseOfDecimals(t *testing.T) {
	for _, row := range []struct {
		v, step any
		want    bool
	}{
		{int64(6), int64(3), true}, {int64(7), int64(3), false}, {int64(0), int64(3), true}, {int64(math.MinInt64), int64(1), true},
		{0.3, 0.1, true}, {0.35, 0.1, false}, {19.99, 0.01, true}, {19.999, 0.01, false}, {int64(3), 1.5, true}, {4.5, int64(3), false},
		{1e308, 0.5, true}, {1e-300, 1e-300, true}, {float64(1 << 53), int64(2), true},
	} {
		if got := multiple(row.v, row.step); got != row.want {
			t.Errorf("multiple(%v, %v) = %t", row.v, row.step, got)
		}
	}
}
