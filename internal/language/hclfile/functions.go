package hclfile

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// builtin is a function of the language. All functions are pure.
type builtin struct {
	impl function.Function
	// cost bounds the work and the result if they can exceed the size of the arguments; nil
	// means that they cannot.
	cost func(args []cty.Value, size int) int
}

func functionNames() []string {
	return append(slices.Collect(maps.Keys(functions)), "file")
}

var functions = map[string]builtin{
	"abs":      {impl: stdlib.AbsoluteFunc},
	"ceil":     {impl: stdlib.CeilFunc},
	"floor":    {impl: stdlib.FloorFunc},
	"max":      {impl: stdlib.MaxFunc},
	"min":      {impl: stdlib.MinFunc},
	"parseint": {impl: stdlib.ParseIntFunc, cost: squaredCost},
	"signum":   {impl: stdlib.SignumFunc},

	"chomp":       {impl: stdlib.ChompFunc},
	"endswith":    {impl: textTest(strings.HasSuffix)},
	"format":      {impl: stdlib.FormatFunc, cost: formatCost},
	"formatlist":  {impl: stdlib.FormatListFunc, cost: formatListCost},
	"indent":      {impl: stdlib.IndentFunc, cost: indentCost},
	"join":        {impl: stdlib.JoinFunc, cost: joinCost},
	"lower":       {impl: stdlib.LowerFunc},
	"replace":     {impl: stdlib.ReplaceFunc, cost: replaceCost},
	"split":       {impl: stdlib.SplitFunc},
	"startswith":  {impl: textTest(strings.HasPrefix)},
	"strcontains": {impl: textTest(strings.Contains)},
	"strrev":      {impl: stdlib.ReverseFunc, cost: perCharacterCost},
	"substr":      {impl: stdlib.SubstrFunc, cost: perCharacterCost},
	"title":       {impl: stdlib.TitleFunc},
	"trim":        {impl: stdlib.TrimFunc},
	"trimprefix":  {impl: stdlib.TrimPrefixFunc},
	"trimspace":   {impl: stdlib.TrimSpaceFunc},
	"trimsuffix":  {impl: stdlib.TrimSuffixFunc},
	"upper":       {impl: stdlib.UpperFunc},

	"chunklist":    {impl: stdlib.ChunklistFunc, cost: unifyCost},
	"coalesce":     {impl: stdlib.CoalesceFunc, cost: perArgumentCost},
	"coalescelist": {impl: stdlib.CoalesceListFunc, cost: perArgumentCost},
	"compact":      {impl: stdlib.CompactFunc},
	"concat":       {impl: stdlib.ConcatFunc, cost: perArgumentCost},
	"contains":     {impl: stdlib.ContainsFunc},
	"distinct":     {impl: stdlib.DistinctFunc, cost: distinctCost},
	"element":      {impl: stdlib.ElementFunc},
	"flatten":      {impl: stdlib.FlattenFunc},
	"keys":         {impl: stdlib.KeysFunc},
	"length":       {impl: length, cost: perCharacterCost},
	"lookup":       {impl: stdlib.LookupFunc},
	"merge":        {impl: stdlib.MergeFunc, cost: perArgumentCost},
	"reverse":      {impl: stdlib.ReverseListFunc},
	"slice":        {impl: stdlib.SliceFunc},
	"sort":         {impl: stdlib.SortFunc},
	"values":       {impl: stdlib.ValuesFunc},
	"zipmap":       {impl: stdlib.ZipmapFunc},

	"tobool":   {impl: stdlib.MakeToFunc(cty.Bool)},
	"tolist":   {impl: stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), cost: unifyCost},
	"tomap":    {impl: stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), cost: unifyCost},
	"tonumber": {impl: stdlib.MakeToFunc(cty.Number), cost: squaredCost},
	"tostring": {impl: stdlib.MakeToFunc(cty.String)},

	"base64decode": {impl: textFunction(func(s string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil || !utf8.Valid(b) {
			return "", errors.New("the text is not the base64 form of UTF-8 text")
		}
		return string(b), nil
	})},
	"base64encode": {impl: textFunction(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil })},
	"jsondecode":   {impl: stdlib.JSONDecodeFunc, cost: jsonCost},
	"jsonencode":   {impl: stdlib.JSONEncodeFunc, cost: encodeCost},
	"sha256":       {impl: textFunction(func(s string) (string, error) { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))), nil })},
	"urlencode":    {impl: textFunction(func(s string) (string, error) { return url.QueryEscape(s), nil })},
}

func textFunction(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

func textTest(f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// length counts the items of a list or object, and the characters of a string.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if t := args[0].Type(); t != cty.String && !t.IsObjectType() && !t.IsTupleType() && !t.IsCollectionType() {
			return cty.NilType, function.NewArgErrorf(0, "a string, a list or an object is needed")
		}
		return cty.Number, nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		if v.Type() == cty.String {
			return stdlib.Strlen(v)
		}
		if v.Type().IsObjectType() {
			return cty.NumberIntVal(int64(len(v.Type().AttributeTypes()))), nil
		}
		return convert.Convert(cty.NumberIntVal(int64(v.LengthInt())), cty.Number)
	},
})

const (
	// prohibitiveCost exceeds every budget; ten times it fits a 32-bit int.
	prohibitiveCost = 1 << 27
	// comparison is the cost of comparing two values or types.
	comparison = 4
	// decodedToken is the cost of a token of JSON. cty reads it twice.
	decodedToken = 2048
)

func product(a, b int) int {
	if a != 0 && b > prohibitiveCost/a {
		return prohibitiveCost
	}
	return a * b
}

// squaredCost is for text that is parsed as a number.
func squaredCost(_ []cty.Value, size int) int { return product(size/nodeSize, size/nodeSize) }

// unifyCost is for functions and list conversions that compare each item, or its type, with
// each other.
func unifyCost(args []cty.Value, size int) int {
	items := len(args)
	for _, a := range args {
		items = max(items, itemsOf(a))
	}
	return size + product(comparison*items, size/nodeSize)
}

// distinctCost is for comparing each item of a list with each other.
func distinctCost(args []cty.Value, size int) int {
	return unifyCost(args, size) + product(8*comparison*itemsOf(args[0]), size/nodeSize)
}

// perArgumentCost is for functions that compare the types of all arguments with each other.
func perArgumentCost(args []cty.Value, size int) int {
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
		return prohibitiveCost
	}
	return size + product(int(n), strings.Count(text(args[1]), "\n"))
}

// formatCost includes verbs that use an argument repeatedly.
func formatCost(args []cty.Value, size int) int {
	format := text(args[0])
	return size + widths(format) + product(strings.Count(format, "%"), size-len(format))
}

// formatListCost includes arguments that are not lists, which each item repeats.
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

// jsonCost rejects JSON that is nested too deep for a recursive parser.
func jsonCost(args []cty.Value, size int) int {
	err := jsonguard.Check([]byte(text(args[0])), jsonguard.Limits{Bytes: maxValue, Depth: maxNesting, Tokens: maxTokens})
	var refused *jsonguard.Error
	if errors.As(err, &refused) && (refused.Kind == jsonguard.TooDeep || refused.Kind == jsonguard.TooMany) {
		return prohibitiveCost
	}
	tokens := 0
	for _, mark := range "[{,:" {
		tokens += strings.Count(text(args[0]), string(mark))
	}
	return size + product(tokens, decodedToken)
}

// perCharacterCost is for functions that find user-perceived characters, with a table lookup
// for each code point.
func perCharacterCost(args []cty.Value, size int) int {
	return size + 20*textLen(args[0])
}

// encodeCost is for writing a value byte by byte.
func encodeCost(_ []cty.Value, size int) int { return 6 * size }

// widths adds up the widths and precisions of a format.
func widths(format string) int {
	total, number := 0, 0
	for i := range len(format) {
		if c := format[i]; isDigit(c) {
			number = min(number*10+int(c-'0'), prohibitiveCost)
			total = min(max(total, total+number), prohibitiveCost)
		} else {
			number = 0
		}
	}
	return total
}

// text returns the string v, or "".
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
