package secrets

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mcpd/mcpd/internal/redact"
)

// A veil hides values. It is immutable. A text is gone over once, however many
// values there are: where four bytes begin a form of any, the forms that begin
// with them are looked for.
type veil struct {
	marks map[string]string // by form
	// heads are the forms by their first four bytes, the longest first, and maybe
	// has a bit for each hash of these.
	heads map[uint32][]string
	maybe [maybeWords]uint64
	// longest is the length of the longest form.
	longest int
}

// As many bits as 1<<maybeLog tell that four bytes begin no form, most of the time.
const (
	maybeLog   = 15
	maybeWords = 1 << maybeLog / 64
)

// concealed is a value with its forms, which are kept since a veil is woven anew
// whenever a value is added.
type concealed struct {
	value string
	forms []string
}

// conceal returns a value with its forms, each once.
func conceal(value string) concealed {
	all := slices.DeleteFunc(forms(value), func(form string) bool { return len(form) < shortest })
	slices.Sort(all)
	return concealed{value, slices.Compact(all)}
}

// weave makes a veil over the values of each name.
func weave(values map[string][]concealed) *veil {
	v := &veil{marks: map[string]string{}, heads: map[uint32][]string{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			for _, form := range value.forms {
				if _, taken := v.marks[form]; !taken {
					v.marks[form] = mark(name)
				}
			}
		}
	}
	for form := range v.marks {
		head := headOf(form, 0)
		v.heads[head] = append(v.heads[head], form)
		bit := hashOf(head)
		v.maybe[bit/64] |= 1 << (bit % 64)
		v.longest = max(v.longest, len(form))
	}
	for _, begun := range v.heads {
		slices.SortFunc(begun, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
	return v
}

// headOf returns four bytes of a text as one number.
func headOf[T string | []byte](text T, at int) uint32 {
	return uint32(text[at]) | uint32(text[at+1])<<8 | uint32(text[at+2])<<16 | uint32(text[at+3])<<24
}

// hashOf returns a bit of a veil for four bytes, by Fibonacci hashing.
func hashOf(head uint32) uint32 { return head * 2654435769 >> (32 - maybeLog) }

// find returns where the first form stands from a place on, and the length of the
// text when none does.
func find[T string | []byte](v *veil, text T, from int) int {
	if len(v.marks) == 0 {
		return len(text)
	}
	for at := from; at+shortest <= len(text); at++ {
		head := headOf(text, at)
		if bit := hashOf(head); v.maybe[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		if formAt(v, text, at, head) != "" {
			return at
		}
	}
	return len(text)
}

// formAt returns the longest form that stands at a place, or "".
func formAt[T string | []byte](v *veil, text T, at int, head uint32) string {
	for _, form := range v.heads[head] {
		if len(form) <= len(text)-at && string(text[at:at+len(form)]) == form {
			return form
		}
	}
	return ""
}

// replaced returns a text with marks in it; first is where the first form stands. Of forms
// that overlap the first has its mark there, as in [redact.Over]. It keeps no spans: what
// hosts and files answer may be large, and hold a value everywhere.
func replaced(v *veil, text []byte, first int) []byte {
	out := make([]byte, 0, len(text))
	last := 0
	for at := first; at < len(text); {
		form := formAt(v, text, at, headOf(text, at))
		out = append(append(out, text[last:at]...), v.marks[form]...)
		last = at + len(form)
		for at = find(v, text, at+1); at < last; at = find(v, text, at+1) {
			last = max(last, at+len(formAt(v, text, at, headOf(text, at))))
		}
	}
	return append(out, text[last:]...)
}

// Find implements [redact.Net].
func (v *veil) Find(spans []redact.Span, text string) []redact.Span {
	for at := find(v, text, 0); at < len(text); at = find(v, text, at+1) {
		form := formAt(v, text, at, headOf(text, at))
		spans = append(spans, redact.Span{From: at, To: at + len(form), Mark: v.marks[form]})
	}
	return spans
}

// Longest implements [redact.Net].
func (v *veil) Longest() int { return v.longest }

func (v *veil) over(text string) string { return redact.Over(text, v) }
