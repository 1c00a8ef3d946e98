package schema

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// A listRule is what an array must be.
type listRule struct {
	min, max int
	unique   bool
	prefix   []*node
	// items is for those after the prefix; nil is anything.
	items    *node
	contains *containsRule
}

// A containsRule is how many items of an array must fit a node.
type containsRule struct {
	node     *node
	min, max int
}

func (l *listRule) check(list []any, r *run) bool {
	ok := true
	if len(list) < l.min {
		ok = r.refuse(func() string { return count(l.min, leastCount, "item") })
	}
	if len(list) > l.max {
		ok = r.refuse(func() string { return count(l.max, mostCount, "item") })
	}
	if (ok || r.explain) && (l.items != nil || len(l.prefix) > 0) {
		ok = l.checkItems(list, r) && ok
	}
	if l.unique && (ok || r.explain) {
		ok = l.checkUnique(list, r) && ok
	}
	if l.contains != nil && (ok || r.explain) {
		ok = l.contains.check(list, r) && ok
	}
	return ok
}

func (l *listRule) checkItems(list []any, r *run) bool {
	ok := true
	for i, v := range list {
		n := l.items
		if i < len(l.prefix) {
			n = l.prefix[i]
		}
		r.enter(item(i))
		fits := n.check(v, r)
		r.leave()
		if ok = fits && ok; !ok && !r.explain {
			break
		}
	}
	return ok
}

// checkUnique spells every item in one way only and looks the spelling up, so
// that it takes time linear in the size of the array.
func (l *listRule) checkUnique(list []any, r *run) bool {
	if len(list) < 2 {
		return true
	}
	seen := make(map[string]int, len(list))
	for i, v := range list {
		spelled := r.spell(v)
		if !r.step(1 + len(spelled)/8) {
			return false
		}
		if j, again := seen[string(spelled)]; again {
			return r.refuse(func() string { return fmt.Sprintf(equalItems, j, i) })
		}
		seen[string(spelled)] = i
	}
	return true
}

func (c *containsRule) check(list []any, r *run) bool {
	n := 0
	for _, v := range list {
		if r.quietly(c.node, v) {
			n++
		}
		if r.exhausted() {
			return false
		}
		if n >= c.min && c.max == math.MaxInt {
			return true
		}
	}
	ok := true
	if n < c.min {
		ok = r.refuse(func() string { return count(c.min, leastCount, "item") + " " + thatFits })
	}
	if n > c.max {
		ok = r.refuse(func() string { return count(c.max, mostCount, "item") + " " + thatFits })
	}
	return ok
}

// spell returns bytes that are the same for equal values and differ for
// different ones: members are sorted, and a number is spelled by its value. The
// bytes are good until the next call.
func (r *run) spell(v any) []byte {
	r.scratch = appendSpelling(r.scratch[:0], v)
	return r.scratch
}

func appendSpelling(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'i'), uint64(v))
	case float64:
		if v == math.Trunc(v) && v >= -edge && v < edge {
			return appendSpelling(b, int64(v))
		}
		if r := rational(v); r != nil && r.IsInt() {
			return appendSpelling(b, r.Num())
		}
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case *big.Int:
		return appendSpelledText(append(b, 'b'), v.String())
	case string:
		return appendSpelledText(append(b, '"'), v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = appendSpelling(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range sortedNames(v) {
			b = appendSpelling(appendSpelledText(b, name), v[name])
		}
		return append(b, '}')
	}
	return append(b, 'n')
}

// appendSpelledText appends a string after its length, so that no two rows of
// strings read alike.
func appendSpelledText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
