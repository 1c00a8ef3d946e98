package scripting

import (
	"math"

	"github.com/dop251/goja"
)

// makeNumbers makes numbers.
func (r *run) makeNumbers() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "format", r.formatNumber)
	r.method(o, "parse", r.parseNumber)
	r.method(o, "formatBytes", r.formatBytes)
	r.method(o, "parseBytes", func(c goja.FunctionCall) goja.Value {
		return r.measured("numbers.parseBytes", c.Argument(0), sizeOf, `a size such as "1.5 GiB" or "10 MB"`)
	})
	r.method(o, "formatDuration", func(c goja.FunctionCall) goja.Value {
		return r.rt.ToValue(durationText(math.Round(r.finite("numbers.formatDuration(milliseconds)", c.Argument(0)))))
	})
	r.method(o, "parseDuration", func(c goja.FunctionCall) goja.Value {
		return r.measured("numbers.parseDuration", c.Argument(0), durationOf, `a duration such as "2h30m" or "250ms"`)
	})
	return o
}

// finite returns an argument that must be a number, and neither NaN nor infinite.
func (r *run) finite(what string, v goja.Value) float64 {
	f, ok := number(v)
	if !ok {
		panic(r.typeError(what + ": a finite number is needed"))
	}
	return f
}

// signs returns what stands between groups of digits and in front of decimals.
func (r *run) signs(what string, options goja.Value) (group, point string) {
	group, point = ",", "."
	if v := option(options, "group"); !goja.IsUndefined(v) {
		group = textOf(v)
	}
	if v := option(options, "point"); !goja.IsUndefined(v) {
		point = textOf(v)
	}
	if point == "" || group == point || len(group)+len(point) > 16 {
		panic(r.typeError(what + ": group and point must be short, and differ"))
	}
	return group, point
}

// decimals returns the option of that name.
func (r *run) decimals(what string, options goja.Value, otherwise int) int {
	v := option(options, "decimals")
	if goja.IsUndefined(v) {
		return otherwise
	}
	f, ok := number(v)
	if !ok || f != math.Trunc(f) || f < 0 || f > 20 {
		panic(r.typeError(what + ": decimals must be a whole number from 0 to 20"))
	}
	return int(f)
}

// formatNumber is numbers.format(number, { decimals, group, point }).
func (r *run) formatNumber(c goja.FunctionCall) goja.Value {
	const what = "numbers.format"
	f := r.finite(what, c.Argument(0))
	options := r.options(what, c.Argument(1), "decimals", "group", "point")
	group, point := r.signs(what, options)
	return r.rt.ToValue(grouped(rounded(f, r.decimals(what, options, -1)), group, point))
}

// parseNumber is numbers.parse(text, { group, point }).
func (r *run) parseNumber(c goja.FunctionCall) goja.Value {
	const what = "numbers.parse"
	group, point := r.signs(what, r.options(what, c.Argument(1), "group", "point"))
	read := func(text string) (float64, bool) { return ungrouped(text, group, point) }
	return r.measured(what, c.Argument(0), read, "a number with these signs")
}

// measured returns what read makes of a text.
func (r *run) measured(what string, v goja.Value, read func(string) (float64, bool), wanted string) goja.Value {
	f, ok := read(r.textArgument(what, v))
	if !ok || math.IsInf(f, 0) {
		panic(r.syntaxError(what + ": the text is not " + wanted))
	}
	return r.rt.ToValue(f)
}

// formatBytes is numbers.formatBytes(bytes, { decimals, base }).
func (r *run) formatBytes(c goja.FunctionCall) goja.Value {
	const what = "numbers.formatBytes"
	f := r.finite(what, c.Argument(0))
	options := r.options(what, c.Argument(1), "decimals", "base")
	units := binaryUnits()
	if base := option(options, "base"); !goja.IsUndefined(base) {
		switch n, _ := number(base); n {
		case 1000:
			units = decimalUnits()
		case 1024:
		default:
			panic(r.typeError(what + ": base must be 1000 or 1024"))
		}
	}
	return r.rt.ToValue(sizeText(f, units, r.decimals(what, options, 1)))
}
