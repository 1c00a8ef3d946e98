package hclfile

import (
	"errors"
	"math/big"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/internal/jsongate"
)

const (
	// tooMuch is a cost that no file can pay; ten times it fits an int of 32 bits.
	tooMuch = 1 << 27
	// comparison is the cost of comparing two values or their types.
	comparison = 4
	// decodedToken is the cost of a token of JSON for cty, which reads it twice.
	decodedToken = 2048
)

// product multiplies without overflow.
func product(a, b int) int {
	if a != 0 && b > tooMuch/a {
		return tooMuch
	}
	return a * b
}

// squared is for text that is read as a number.
func squared(_ []cty.Value, size int) int { return product(size/nodeSize, size/nodeSize) }

// unifying is for functions, and conversions of lists, that compare every item
// or its type with every other.
func unifying(args []cty.Value, size int) int {
	items := len(args)
	for _, a := range args {
		items = max(items, itemsOf(a))
	}
	return size + product(comparison*items, size/nodeSize)
}

// distinctCost is for a list whose every item is compared with every other.
func distinctCost(args []cty.Value, size int) int {
	return unifying(args, size) + product(8*comparison*itemsOf(args[0]), size/nodeSize)
}

// perArgument is for functions that compare the type of every argument with
// that of every other.
func perArgument(args []cty.Value, size int) int {
	return size + product(comparison*len(args), size/nodeSize)
}

func joinCost(args []cty.Value, size int) int {
	items := 0
	for _, list := range args[1:] {
		items += itemsOf(list)
	}
	return size + product(items, textLen(args[0]))
}

func replaceCost(args []cty.Value, size int) int {
	found := strings.Count(text(args[0]), text(args[1]))
	return size + product(found, textLen(args[2]))
}

func indentCost(args []cty.Value, size int) int {
	n, accuracy := args[0].AsBigFloat().Int64()
	if accuracy != big.Exact || n < 0 || n > maxValue {
		return tooMuch
	}
	return size + product(int(n), strings.Count(text(args[1]), "\n"))
}

// formatCost allows for verbs that use the same argument again.
func formatCost(args []cty.Value, size int) int {
	format := text(args[0])
	return size + widths(format) + product(strings.Count(format, "%"), size-len(format))
}

// formatListCost allows for arguments that are no lists and so are repeated
// in every item.
func formatListCost(args []cty.Value, size int) int {
	items, lists := 1, 0
	for _, a := range args[1:] {
		if n := itemsOf(a); n > 0 {
			items = max(items, n)
			lists++
		}
	}
	if lists == len(args)-1 {
		return size + product(items, len(text(args[0]))+widths(text(args[0]))) + product(strings.Count(text(args[0]), "%"), size)
	}
	return product(items, formatCost(args, size))
}

// jsonCost refuses JSON that nests too deep for a recursive parser.
func jsonCost(args []cty.Value, size int) int {
	err := jsongate.Check([]byte(text(args[0])), jsongate.Limits{Bytes: maxValue, Depth: maxNesting, Tokens: maxTokens})
	var refused *jsongate.Error
	if errors.As(err, &refused) && (refused.Kind == jsongate.TooDeep || refused.Kind == jsongate.TooMany) {
		return tooMuch
	}
	tokens := 0
	for _, mark := range "[{,:" {
		tokens += strings.Count(text(args[0]), string(mark))
	}
	return size + product(tokens, decodedToken)
}

// perCharacter is for functions that look for the characters of a text as
// people see them, which takes a table for each code point.
func perCharacter(args []cty.Value, size int) int {
	return size + 20*textLen(args[0])
}

// encodeCost is for writing a value out byte by byte.
func encodeCost(_ []cty.Value, size int) int { return 6 * size }

// widths adds up the widths and precisions that a format asks for.
func widths(format string) int {
	total, number := 0, 0
	for i := range len(format) {
		if c := format[i]; isDigit(c) {
			number = min(number*10+int(c-'0'), tooMuch)
			total = min(max(total, total+number), tooMuch)
		} else {
			number = 0
		}
	}
	return total
}

// text returns the string that v is, or "".
func text(v cty.Value) string {
	if v.Type() != cty.String || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func textLen(v cty.Value) int { return len(text(v)) }

func itemsOf(v cty.Value) int {
	if v.IsNull() || !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}
