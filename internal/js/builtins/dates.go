package builtins

import (
	"math"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/dates"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeDates returns dates. Its functions do not read the clock.
func (r *Realm) makeDates() *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "parse", r.parseDate)
	r.Method(o, "format", r.formatDate)
	r.Method(o, "parts", r.dateParts)
	r.Method(o, "add", r.addToDate)
	r.Method(o, "diff", r.diffDates)
	r.Method(o, "startOf", func(c goja.FunctionCall) goja.Value {
		const what = "dates.startOf"
		t := r.dateOf(what, c.Argument(0), c.Argument(2))
		began, ok := dates.StartOf(t, r.dateUnit(c.Argument(1)))
		if !ok {
			panic(r.TypeError(what + ": the unit must be year, quarter, month, week, day, hour, minute or second"))
		}
		return r.newDate(what, began)
	})
	return o
}

// longestDate is the limit of a Date, in milliseconds from 1970.
const longestDate = 8.64e15

func (r *Realm) newDate(what string, t time.Time) goja.Value {
	// Check the year first: the milliseconds of distant years overflow.
	if t.Year() < -271_821 || t.Year() > 275_760 || math.Abs(float64(t.UnixMilli())) > longestDate {
		panic(r.RangeError(what + ": the date is farther away than a Date can be"))
	}
	return r.Construct("Date", r.Runtime.ToValue(t.UnixMilli()))
}

func (r *Realm) zone(what string, options goja.Value) *time.Location {
	v := Option(r.options(what, options, "zone"), "zone")
	if goja.IsUndefined(v) {
		return time.UTC
	}
	name := TextOf(v)
	if zone, ok := r.zones[name]; ok {
		return zone
	}
	// Local is the zone of the machine, and not a name of a zone.
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" || len(name) > 64 {
		panic(r.TypeError(what + `: there is no such time zone; write a name such as "Europe/Berlin"`))
	}
	if r.zones == nil {
		r.zones = map[string]*time.Location{}
	}
	r.zones[name] = zone
	return zone
}

// dateOf returns an argument that must be a date, in the zone of the options.
func (r *Realm) dateOf(what string, v, options goja.Value) time.Time {
	zone := r.zone(what, options)
	if text, ok := v.(goja.String); ok {
		t, err := dates.ParseISO(r.bounded(text).String(), zone)
		if err != nil {
			panic(r.SyntaxError(what + ": " + err.Error()))
		}
		return t.In(zone)
	}
	if o, ok := v.(*goja.Object); ok && jsvalue.KindOf(o) == jsvalue.Date {
		v = o.ToNumber()
	}
	ms, ok := jsvalue.Finite(v)
	if !ok || math.Abs(ms) > longestDate {
		panic(r.TypeError(what + ": the date must be a Date that is valid, milliseconds since 1970, or text of ISO 8601"))
	}
	return time.UnixMilli(int64(ms)).In(zone)
}

func (r *Realm) pattern(what string, v goja.Value) string {
	if IsNothing(v) {
		return ""
	}
	text := r.textArgument(what, v)
	if len(text) > maxDatePattern {
		panic(r.RangeError(what + ": a pattern has at most 256 bytes"))
	}
	return text
}

const maxDatePattern = 256

// parseDate is dates.parse(text, pattern, { zone }).
func (r *Realm) parseDate(c goja.FunctionCall) goja.Value {
	const what = "dates.parse"
	text, pattern, zone := r.textArgument(what, c.Argument(0)), r.pattern(what, c.Argument(1)), r.zone(what, c.Argument(2))
	var t time.Time
	var err error
	if pattern == "" {
		t, err = dates.ParseISO(text, zone)
	} else {
		t, err = dates.Parse(text, pattern, zone)
	}
	if err != nil {
		panic(r.SyntaxError(what + ": " + err.Error()))
	}
	return r.newDate(what, t)
}

// formatDate is dates.format(date, pattern, { zone }).
func (r *Realm) formatDate(c goja.FunctionCall) goja.Value {
	const what = "dates.format"
	t, pattern := r.dateOf(what, c.Argument(0), c.Argument(2)), r.pattern(what, c.Argument(1))
	if pattern == "" {
		pattern = "YYYY-MM-DDTHH:mm:ss.SSSZ"
	}
	if t.Year() < 0 || t.Year() > 9999 {
		panic(r.RangeError(what + ": the year must be of four digits"))
	}
	text, err := dates.Format(t, pattern)
	if err != nil {
		panic(r.SyntaxError(what + ": " + err.Error()))
	}
	return r.Runtime.ToValue(text)
}

// dateParts is dates.parts(date, { zone }).
func (r *Realm) dateParts(c goja.FunctionCall) goja.Value {
	t := r.dateOf("dates.parts", c.Argument(0), c.Argument(1))
	_, offset := t.Zone()
	o := r.Runtime.NewObject()
	for _, part := range []struct {
		name  string
		value int
	}{
		{"year", t.Year()}, {"month", int(t.Month())}, {"day", t.Day()}, {"hour", t.Hour()}, {"minute", t.Minute()}, {"second", t.Second()},
		{"millisecond", t.Nanosecond() / 1e6}, {"weekday", (int(t.Weekday())+6)%7 + 1}, {"offset", offset / 60},
	} {
		_ = o.Set(part.name, part.value)
	}
	return o
}

// dateUnit returns a unit without its plural s.
func (r *Realm) dateUnit(v goja.Value) string { return strings.TrimSuffix(TextOf(v), "s") }

const maxAmount = 1e9

// addToDate is dates.add(date, amounts, { zone }). Larger units are added first.
func (r *Realm) addToDate(c goja.FunctionCall) goja.Value {
	const what = "dates.add"
	t := r.dateOf(what, c.Argument(0), c.Argument(2))
	units := []string{"years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds"}
	amounts := r.options(what, c.Argument(1), units...)
	for _, unit := range units {
		v := Option(amounts, unit)
		if goja.IsUndefined(v) {
			continue
		}
		n, ok := jsvalue.Finite(v)
		if !ok || n != math.Trunc(n) || math.Abs(n) > maxAmount && unit != "milliseconds" || math.Abs(n) > longestDate {
			panic(r.TypeError(what + ": " + unit + " must be a whole number of at most a billion"))
		}
		t, _ = dates.Add(t, strings.TrimSuffix(unit, "s"), int(n))
		r.newDate(what, t)
	}
	return r.newDate(what, t)
}

// diffDates is dates.diff(from, to, unit, { zone }).
func (r *Realm) diffDates(c goja.FunctionCall) goja.Value {
	const what = "dates.diff"
	from, to := r.dateOf(what, c.Argument(0), c.Argument(3)), r.dateOf(what, c.Argument(1), c.Argument(3))
	n, ok := dates.Diff(from, to, r.dateUnit(c.Argument(2)))
	if !ok {
		panic(r.TypeError(what + ": the unit must be year, month, week, day, hour, minute, second or millisecond"))
	}
	return r.Runtime.ToValue(n)
}
