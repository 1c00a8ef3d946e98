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

// libraries returns CEL as policies speak it. What is left out can answer
// with far more than it is given (string formatting, lists.range) or takes
// time that nothing interrupts (sorting, distinct).
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

// mixed maps the arithmetic operators to the functions that stand in for them beside a
// value whose type is known only in the call. Unlike CEL's own, these take an integer beside
// a number. Their names cannot be written in a policy.
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

// ifAble returns the function that calls a method of its first operand, if that has it.
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

// zones are the time zones that expressions name. They are found when an
// expression is compiled: a decision reads no files.
type zones struct{ found sync.Map }

// load finds the zone, an IANA name or an offset such as +02:00.
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
		return nil, fmt.Errorf("%q is not the same zone everywhere", name)
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

// zoned maps the functions of timestamps that take a zone to CEL's names for them.
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

// options puts the zones in the place of CEL's own, which reads them from
// disk in every evaluation.
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

// checkZones refuses time zones that do not exist or are computed.
func (c *compiler) checkZones(at *positions, tree *ast.AST) bool {
	ok := true
	visit(tree.Expr(), func(e ast.Expr) {
		if zoned[e.AsCall().FunctionName()] == "" || len(e.AsCall().Args()) != 1 {
			return
		}
		p := problem{code: codeType, summary: "the time zone must be written out", detail: "such as 'Europe/Berlin' or '+02:00'"}
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
