package hclfile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// builtin is a function of the language. All of them are pure.
type builtin struct {
	impl function.Function
	// cost bounds the work and the result where these can exceed the size of
	// the arguments; nil means that they do not.
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
	"parseint": {impl: stdlib.ParseIntFunc, cost: squared},
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
	"strrev":      {impl: stdlib.ReverseFunc, cost: perCharacter},
	"substr":      {impl: stdlib.SubstrFunc, cost: perCharacter},
	"title":       {impl: stdlib.TitleFunc},
	"trim":        {impl: stdlib.TrimFunc},
	"trimprefix":  {impl: stdlib.TrimPrefixFunc},
	"trimspace":   {impl: stdlib.TrimSpaceFunc},
	"trimsuffix":  {impl: stdlib.TrimSuffixFunc},
	"upper":       {impl: stdlib.UpperFunc},

	"chunklist":    {impl: stdlib.ChunklistFunc, cost: unifying},
	"coalesce":     {impl: stdlib.CoalesceFunc, cost: perArgument},
	"coalescelist": {impl: stdlib.CoalesceListFunc, cost: perArgument},
	"compact":      {impl: stdlib.CompactFunc},
	"concat":       {impl: stdlib.ConcatFunc, cost: perArgument},
	"contains":     {impl: stdlib.ContainsFunc},
	"distinct":     {impl: stdlib.DistinctFunc, cost: distinctCost},
	"element":      {impl: stdlib.ElementFunc},
	"flatten":      {impl: stdlib.FlattenFunc},
	"keys":         {impl: stdlib.KeysFunc},
	"length":       {impl: length, cost: perCharacter},
	"lookup":       {impl: stdlib.LookupFunc},
	"merge":        {impl: stdlib.MergeFunc, cost: perArgument},
	"reverse":      {impl: stdlib.ReverseListFunc},
	"slice":        {impl: stdlib.SliceFunc},
	"sort":         {impl: stdlib.SortFunc},
	"values":       {impl: stdlib.ValuesFunc},
	"zipmap":       {impl: stdlib.ZipmapFunc},

	"tobool":   {impl: stdlib.MakeToFunc(cty.Bool)},
	"tolist":   {impl: stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), cost: unifying},
	"tomap":    {impl: stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), cost: unifying},
	"tonumber": {impl: stdlib.MakeToFunc(cty.Number), cost: squared},
	"tostring": {impl: stdlib.MakeToFunc(cty.String)},

	"base64decode": {impl: textFunction(base64Decode)},
	"base64encode": {impl: textFunction(base64Encode)},
	"jsondecode":   {impl: stdlib.JSONDecodeFunc, cost: jsonCost},
	"jsonencode":   {impl: stdlib.JSONEncodeFunc, cost: encodeCost},
	"sha256":       {impl: textFunction(sha256Hex)},
	"urlencode":    {impl: textFunction(urlEncode)},
}

// textFunction makes a function of one string.
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

// textTest makes a function that compares two strings.
func textTest(f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func base64Encode(s string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func base64Decode(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || !utf8.Valid(b) {
		return "", errors.New("the text is not the base64 form of UTF-8 text")
	}
	return string(b), nil
}

func urlEncode(s string) (string, error) { return url.QueryEscape(s), nil }

func sha256Hex(s string) (string, error) {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:]), nil
}

// length counts the items of a list or an object, and the characters of a string.
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
