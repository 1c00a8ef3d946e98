package schema

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// A textRule is what a string must be.
type textRule struct {
	// min and max count code points (draft 2020-12 validation section 6.3).
	min, max int
	pattern  *pattern
	format   *format
}

func (t *textRule) check(s string, r *run) bool {
	ok := true
	// A string of n bytes has between n/4 and n code points.
	if t.min > 0 && (len(s) < t.min || len(s) < 4*t.min && utf8.RuneCountInString(s) < t.min) {
		ok = r.refuse(func() string { return count(t.min, leastText, "character") })
	}
	if t.max < math.MaxInt && len(s) > t.max && utf8.RuneCountInString(s) > t.max {
		ok = r.refuse(func() string { return count(t.max, mostText, "character") })
	}
	if t.pattern != nil && (ok || r.explain) {
		ok = t.checkPattern(s, r) && ok
	}
	if t.format != nil && (!r.step(t.format.cost*len(s)) || !t.format.valid(s)) {
		ok = r.refuse(func() string { return fmt.Sprintf(formatted, t.format.words) })
	}
	return ok
}

func (t *textRule) checkPattern(s string, r *run) bool {
	if !r.step(t.pattern.cost(len(s))) {
		return false
	}
	if t.pattern.MatchString(s) {
		return true
	}
	return r.refuse(func() string { return fmt.Sprintf(matching, t.pattern.String()) })
}
