package policylang

import (
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// searches puts linear searches in the place of CEL's own, which compare the part
// at each place of the text: two texts of a caller could take hours.
func searches() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("indexOf", searchFrom("string_index_of_string", "string_index_of_string_int", 0, index)...),
		cel.Function("lastIndexOf", searchFrom("string_last_index_of_string", "string_last_index_of_string_int", -1, lastIndex)...),
	}
}

// searchFrom declares a search that may be given where it begins, and else begins
// at the first character or, where begin is -1, at the last.
func searchFrom(plain, from string, begin int, find func(text, part string, from int) int) []cel.FunctionOpt {
	found := func(text, part ref.Val, from int) ref.Val {
		return types.Int(find(string(text.(types.String)), string(part.(types.String)), from))
	}
	return []cel.FunctionOpt{
		cel.MemberOverload(plain, []*cel.Type{cel.StringType, cel.StringType}, cel.IntType,
			cel.BinaryBinding(func(text, part ref.Val) ref.Val {
				if begin < 0 {
					return found(text, part, utf8.RuneCountInString(string(text.(types.String))))
				}
				return found(text, part, begin)
			})),
		cel.MemberOverload(from, []*cel.Type{cel.StringType, cel.StringType, cel.IntType}, cel.IntType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				at := args[2].(types.Int)
				if at < 0 {
					return types.NewErr("index out of range: %d", at)
				}
				n := utf8.RuneCountInString(string(args[0].(types.String)))
				if at >= types.Int(n) && args[1] != types.String("") {
					return types.Int(-1)
				}
				return found(args[0], args[1], min(int(at), n))
			})),
	}
}

// index returns where the part is found first, at the character from or behind it.
func index(text, part string, from int) int {
	start := byteOf(text, from)
	i := strings.Index(text[start:], part)
	if i < 0 {
		return -1
	}
	return from + utf8.RuneCountInString(text[start:start+i])
}

// lastIndex returns where the part is found last, at the character from or before it.
func lastIndex(text, part string, from int) int {
	end := min(len(text), byteOf(text, from)+len(part))
	i := strings.LastIndex(text[:end], part)
	if i < 0 {
		return -1
	}
	return utf8.RuneCountInString(text[:i])
}

// byteOf returns the place of the nth character of a text that has that many.
func byteOf(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}
