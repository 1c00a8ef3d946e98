package policylang

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

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

// zoned returns CEL's name for the function of timestamps that takes a zone,
// or "" when function is not one of those.
func zoned(function string) string {
	switch function {
	case overloads.TimeGetFullYear:
		return overloads.TimestampToYearWithTz
	case overloads.TimeGetMonth:
		return overloads.TimestampToMonthWithTz
	case overloads.TimeGetDayOfYear:
		return overloads.TimestampToDayOfYearWithTz
	case overloads.TimeGetDayOfMonth:
		return overloads.TimestampToDayOfMonthZeroBasedWithTz
	case overloads.TimeGetDate:
		return overloads.TimestampToDayOfMonthOneBasedWithTz
	case overloads.TimeGetDayOfWeek:
		return overloads.TimestampToDayOfWeekWithTz
	case overloads.TimeGetHours:
		return overloads.TimestampToHoursWithTz
	case overloads.TimeGetMinutes:
		return overloads.TimestampToMinutesWithTz
	case overloads.TimeGetSeconds:
		return overloads.TimestampToSecondsWithTz
	case overloads.TimeGetMilliseconds:
		return overloads.TimestampToMillisecondsWithTz
	}
	return ""
}

// options puts the zones in the place of CEL's own, which reads them from
// disk in every evaluation.
func (z *zones) options() []cel.EnvOption {
	var options []cel.EnvOption
	for _, function := range []string{
		overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDayOfMonth,
		overloads.TimeGetDate, overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes,
		overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
	} {
		options = append(options, cel.Function(function, cel.MemberOverload(zoned(function),
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
func (c *compiler) checkZones(at *places, tree *ast.AST) bool {
	ok := true
	visit(tree.Expr(), func(e ast.Expr) {
		if e.Kind() != ast.CallKind || zoned(e.AsCall().FunctionName()) == "" || len(e.AsCall().Args()) != 1 {
			return
		}
		p := problem{code: codeType, summary: "the time zone must be written out", detail: "such as 'Europe/Berlin' or '+02:00'"}
		zone := e.AsCall().Args()[0]
		if zone.Kind() == ast.LiteralKind {
			name, _ := zone.AsLiteral().(types.String)
			if c.scope.env.zones.load(string(name)) == nil {
				return
			}
			p.summary = fmt.Sprintf("there is no time zone %s", shorten(string(name)))
		}
		ok = false
		c.reportNode(at, zone, p)
	})
	return ok
}
