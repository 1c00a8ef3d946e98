package policylang

import (
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// The prices of work, in the units of a [meter].
const (
	// priceNode is for a node of an expression, each time that it is evaluated.
	priceNode = 20
	// priceCall is for a call, priceItem for an element that a function looks at.
	priceCall = 50
	priceItem = 150
	// priceKey is for a key of a map that is walked in order.
	priceKey = 300
	// priceQuoted is for a byte of what a function may refuse and then quotes, priceRune
	// for one that it decodes, and priceCopy for one that it searches or copies.
	// Comparing is compareBytes bytes a unit.
	priceQuoted  = 40
	priceRune    = 20
	priceCopy    = 2
	compareBytes = 8
	// priceInstruction is for one of a regular expression that is computed.
	priceInstruction = 100
)

// priceOf returns the price of a call with these arguments, of which there is no
// more than most to spend. What it does not know is as dear as the dearest
// function that reads its arguments once.
func priceOf(function string, args []ref.Val, most int64) int64 {
	switch function {
	case operators.Equals, operators.NotEquals:
		return priceCall + priceEqual(args[0], args[1], most)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return priceCall + min(textBytes(args[0]), textBytes(args[1]))/compareBytes
	case operators.In, operators.OldIn:
		return priceCall + priceIn(args[0], args[1], most)
	case overloads.StartsWith, overloads.EndsWith:
		return priceCall + textBytes(args[1])/compareBytes
	case overloads.Size:
		return priceCall + textBytes(args[0])
	case operators.Add, "@add":
		return priceCall + priceCopy*(textBytes(args[0])+textBytes(args[1]))
	case overloads.Contains:
		return priceCall + priceCopy*(textBytes(args[0])+textBytes(args[1]))
	case "charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "substring", "trim":
		return priceCall + priceAll(args, priceRune, most)
	case "replace":
		return priceCall + priceReplace(args)
	case "split":
		return priceCall + priceCopy*textBytes(args[0]) + priceItem*countIn(args[0], args[1])
	case "join":
		return priceCall + priceJoin(args, most)
	case "sets.contains", "sets.equivalent", "sets.intersects":
		return priceCall + priceSets(args, most)
	}
	return priceCall + priceAll(args, priceQuoted, most)
}

// priceAll is for a function that reads all that it is given.
func priceAll(args []ref.Val, eachByte, most int64) int64 {
	sum := int64(0)
	for _, arg := range args {
		l := loadOf(arg, most/priceItem)
		sum = add(sum, add(times(l.items, priceItem), times(l.bytes, eachByte)))
	}
	return sum
}

// priceEqual is for a comparison, which ends at the first size that differs.
func priceEqual(a, b ref.Val, most int64) int64 {
	if sizeIn(a) != sizeIn(b) {
		return 0
	}
	return loadOf(a, most/priceItem).compared()
}

// sizeIn returns the size of a text, a list or a map, and -1 of what has none.
func sizeIn(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return int64(n)
	}
	return -1
}

// priceIn is for a value in a list, or a key in a map. It walks the list only if it must:
// elements that are not as long as a text are never compared with it.
func priceIn(value, in ref.Val, most int64) int64 {
	if _, ok := in.(traits.Mapper); ok {
		return textBytes(value) / compareBytes
	}
	switch value.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
	default:
		if price := times(max(1, sizeIn(in)), priceItem+textBytes(value)/compareBytes); price < allowance/10 {
			return price
		}
	}
	return loadOf(in, most/priceItem).compared()
}

// priceReplace is for s.replace(old, new), by what it gives.
func priceReplace(args []ref.Val) int64 {
	n := countIn(args[0], args[1])
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			n = min(n, int64(most))
		}
	}
	return add(times(textBytes(args[0]), 2*priceCopy), times(times(n, textBytes(args[2])+1), 2*priceCopy))
}

// countIn counts where a text holds another: an empty one fits between any two
// characters.
func countIn(text, part ref.Val) int64 {
	s, _ := text.(types.String)
	p, _ := part.(types.String)
	if p == "" {
		return int64(utf8.RuneCountInString(string(s))) + 1
	}
	return int64(strings.Count(string(s), string(p))) + 1
}

func priceJoin(args []ref.Val, most int64) int64 {
	l := loadOf(args[0], most/priceItem)
	if len(args) > 1 {
		l.bytes = add(l.bytes, times(l.items, textBytes(args[1])))
	}
	return add(times(l.items, priceItem), times(l.bytes, 2*priceCopy))
}

// priceSets is for functions that look each element of one list up in the other.
func priceSets(args []ref.Val, most int64) int64 {
	a, b := loadOf(args[0], most/priceItem), loadOf(args[1], most/priceItem)
	return add(times(a.compared(), max(1, sizeIn(args[1]))), times(b.compared(), max(1, sizeIn(args[0]))))
}

// textBytes returns the length of a text, and 0 for anything else.
func textBytes(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	}
	return 0
}

// load is how much there is in a value, however deep.
type load struct{ items, bytes int64 }

// compared is the price of comparing all of it.
func (l load) compared() int64 { return times(l.items, priceItem) + l.bytes/compareBytes }

// loadOf counts what is in a value, up to most items.
func loadOf(v ref.Val, most int64) load {
	l := load{}
	l.take(v, most)
	return l
}

func (l *load) take(v ref.Val, most int64) {
	if l.items++; l.items > most {
		return
	}
	switch v := v.(type) {
	case types.String:
		l.bytes += int64(len(v))
	case types.Bytes:
		l.bytes += int64(len(v))
	case *types.Optional:
		if v.HasValue() {
			l.take(v.GetValue(), most)
		}
	case sortedMap:
		l.takeMap(v.Mapper, most)
	case traits.Mapper:
		l.takeMap(v, most)
	case traits.Lister:
		for it := v.Iterator(); l.items <= most && it.HasNext() == types.True; {
			l.take(it.Next(), most)
		}
	}
}

func (l *load) takeMap(m traits.Mapper, most int64) {
	for it := m.Iterator(); l.items <= most && it.HasNext() == types.True; {
		key := it.Next()
		l.take(key, most)
		l.take(m.Get(key), most)
	}
}

// add and times stop at more than any decision may spend.
func add(a, b int64) int64 { return min(a, allowance+1) + min(b, allowance+1) }

func times(a, b int64) int64 {
	if b > 0 && a > (allowance+1)/b {
		return allowance + 1
	}
	return a * b
}
