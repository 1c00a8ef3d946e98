package policylang

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// libraries returns the CEL libraries for policies. They exclude functions with results much
// larger than their arguments (string formatting, lists.range) and functions that cannot be
// interrupted (sorting, distinct).
func libraries(z *zones) []cel.EnvOption {
	library := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(0)),
		ext.Math(),
		ext.Sets(),
		ext.Lists(ext.ListsVersion(0)),
		ext.Bindings(ext.BindingsVersion(0)),
		ext.Network(),
		cel.ParserExpressionSizeLimit(maxBytes),
	}
	return slices.Concat(library, dynamicArithmetic(), searches(), z.options())
}

// dynamicOperators maps the arithmetic operators to functions that replace them if the type of
// an operand is known only in the call. Unlike CEL's operators, they accept an integer next to
// a number. Policies cannot write their names.
var dynamicOperators = map[string]string{
	operators.Add: "@add", operators.Subtract: "@subtract", operators.Multiply: "@multiply", operators.Divide: "@divide",
}

func dynamicArithmetic() []cel.EnvOption {
	return []cel.EnvOption{
		dynamicOperator("@add", method(traits.Adder.Add)),
		dynamicOperator("@subtract", method(traits.Subtractor.Subtract)),
		dynamicOperator("@multiply", method(traits.Multiplier.Multiply)),
		dynamicOperator("@divide", method(traits.Divider.Divide)),
	}
}

// method returns a function that calls a method of its first operand, if the operand has that
// method.
func method[T any](method func(T, ref.Val) ref.Val) func(a, b ref.Val) ref.Val {
	return func(a, b ref.Val) ref.Val {
		if x, ok := a.(T); ok {
			return method(x, b)
		}
		return types.MaybeNoSuchOverloadErr(a)
	}
}

func dynamicOperator(name string, op func(a, b ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_dyn_dyn",
		[]*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
		cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			switch {
			case a.Type() == types.DoubleType && b.Type() == types.IntType:
				b = b.ConvertToType(types.DoubleType)
			case a.Type() == types.IntType && b.Type() == types.DoubleType:
				a = a.ConvertToType(types.DoubleType)
			}
			return op(a, b)
		})))
}

// searches replaces CEL's quadratic searches by linear ones. With two texts of a caller, CEL's
// could take hours.
func searches() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("indexOf", searchFrom("string_index_of_string", "string_index_of_string_int", 0, index)...),
		cel.Function("lastIndexOf", searchFrom("string_last_index_of_string", "string_last_index_of_string_int", -1, lastIndex)...),
	}
}

// searchFrom declares a search with an optional start. The default start is begin, or the last
// character if begin is -1.
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

// index returns the first position of part at or after the character from.
func index(text, part string, from int) int {
	start := byteOf(text, from)
	i := strings.Index(text[start:], part)
	if i < 0 {
		return -1
	}
	return from + utf8.RuneCountInString(text[start:start+i])
}

// lastIndex returns the last position of part at or before the character from.
func lastIndex(text, part string, from int) int {
	end := min(len(text), byteOf(text, from)+len(part))
	i := strings.LastIndex(text[:end], part)
	if i < 0 {
		return -1
	}
	return utf8.RuneCountInString(text[:i])
}

// byteOf returns the byte offset of the nth character. The text must be long enough.
func byteOf(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}

// zones caches the time zones that expressions name. They are loaded at compile time, because a
// decision must not read files.
type zones struct{ found sync.Map }

// load loads a zone: an IANA name, or an offset such as +02:00.
func (z *zones) load(name string) error {
	if _, ok := z.found.Load(name); ok {
		return nil
	}
	location, err := findZone(name)
	if err == nil {
		z.found.Store(name, location)
	}
	return err
}

func findZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q depends on the machine", name)
	}
	if ok, _ := regexp.MatchString(`^[+-]?([01]\d|2[0-3]):[0-5]\d$`, name); !ok {
		return time.LoadLocation(name)
	}
	offset, err := time.Parse("15:04", strings.TrimLeft(name, "+-"))
	if err != nil {
		return nil, err
	}
	seconds := offset.Hour()*3600 + offset.Minute()*60
	if name[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone("", seconds), nil
}

// zoned maps the timestamp functions with a zone to CEL's names for them.
var zoned = map[string]string{
	overloads.TimeGetFullYear:     overloads.TimestampToYearWithTz,
	overloads.TimeGetMonth:        overloads.TimestampToMonthWithTz,
	overloads.TimeGetDayOfYear:    overloads.TimestampToDayOfYearWithTz,
	overloads.TimeGetDayOfMonth:   overloads.TimestampToDayOfMonthZeroBasedWithTz,
	overloads.TimeGetDate:         overloads.TimestampToDayOfMonthOneBasedWithTz,
	overloads.TimeGetDayOfWeek:    overloads.TimestampToDayOfWeekWithTz,
	overloads.TimeGetHours:        overloads.TimestampToHoursWithTz,
	overloads.TimeGetMinutes:      overloads.TimestampToMinutesWithTz,
	overloads.TimeGetSeconds:      overloads.TimestampToSecondsWithTz,
	overloads.TimeGetMilliseconds: overloads.TimestampToMillisecondsWithTz,
}

// options replaces CEL's zone functions, which read zones from disk in each evaluation.
func (z *zones) options() []cel.EnvOption {
	var options []cel.EnvOption
	for function, overload := range zoned {
		options = append(options, cel.Function(function, cel.MemberOverload(overload,
			[]*cel.Type{cel.TimestampType, cel.StringType}, cel.IntType,
			cel.BinaryBinding(func(at, zone ref.Val) ref.Val { return z.read(function, at, zone) }))))
	}
	return options
}

func (z *zones) read(function string, at, zone ref.Val) ref.Val {
	location, ok := z.found.Load(zone.Value())
	if !ok {
		return types.NewErr("no such time zone")
	}
	there := types.Timestamp{Time: at.(types.Timestamp).In(location.(*time.Location))}
	return there.Receive(function, "", nil)
}

// checkZones reports time zones that do not exist or are computed.
func (c *compiler) checkZones(at *positions, tree *ast.AST) bool {
	ok := true
	visit(tree.Expr(), func(e ast.Expr) {
		if zoned[e.AsCall().FunctionName()] == "" || len(e.AsCall().Args()) != 1 {
			return
		}
		p := problem{code: codeType, summary: "the time zone must be a literal", detail: "write a name or an offset, such as 'Europe/Berlin' or '+02:00'"}
		zone := e.AsCall().Args()[0]
		if zone.Kind() == ast.LiteralKind {
			name, _ := textIn(zone)
			if c.scope.env.zones.load(name) == nil {
				return
			}
			p.summary = fmt.Sprintf("there is no time zone %s", shorten(name))
		}
		ok = false
		c.reportNode(at, zone, p)
	})
	return ok
}
