package builtins

import (
	"math"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

func (r *Realm) makeNumbers() *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "format", r.formatNumber)
	r.Method(o, "parse", r.parseNumber)
	r.Method(o, "formatBytes", r.formatBytes)
	r.Method(o, "parseBytes", func(c goja.FunctionCall) goja.Value {
		return r.parseNumeric("numbers.parseBytes", c.Argument(0), sizeOf, `a size such as "1.5 GiB" or "10 MB"`)
	})
	r.Method(o, "formatDuration", func(c goja.FunctionCall) goja.Value {
		return r.Runtime.ToValue(durationText(math.Round(r.finite("numbers.formatDuration(milliseconds)", c.Argument(0)))))
	})
	r.Method(o, "parseDuration", func(c goja.FunctionCall) goja.Value {
		return r.parseNumeric("numbers.parseDuration", c.Argument(0), durationOf, `a duration such as "2h30m" or "250ms"`)
	})
	return o
}

// finite returns an argument that must be a number, and neither NaN nor infinite.
func (r *Realm) finite(what string, v goja.Value) float64 {
	f, ok := jsvalue.Finite(v)
	if !ok {
		panic(r.TypeError(what + ": a finite number is needed"))
	}
	return f
}

// separators returns the separator of digit groups and the decimal point.
func (r *Realm) separators(what string, options goja.Value) (group, point string) {
	group, point = ",", "."
	if v := Option(options, "group"); !goja.IsUndefined(v) {
		group = TextOf(v)
	}
	if v := Option(options, "point"); !goja.IsUndefined(v) {
		point = TextOf(v)
	}
	if point == "" || group == point || len(group)+len(point) > 16 {
		panic(r.TypeError(what + ": group and point must be short, and differ"))
	}
	return group, point
}

func (r *Realm) decimals(what string, options goja.Value, otherwise int) int {
	v := Option(options, "decimals")
	if goja.IsUndefined(v) {
		return otherwise
	}
	f, ok := jsvalue.Finite(v)
	if !ok || f != math.Trunc(f) || f < 0 || f > 20 {
		panic(r.TypeError(what + ": decimals must be a whole number from 0 to 20"))
	}
	return int(f)
}

// formatNumber is numbers.format(number, { decimals, group, point }).
func (r *Realm) formatNumber(c goja.FunctionCall) goja.Value {
	const what = "numbers.format"
	f := r.finite(what, c.Argument(0))
	options := r.options(what, c.Argument(1), "decimals", "group", "point")
	group, point := r.separators(what, options)
	return r.Runtime.ToValue(grouped(rounded(f, r.decimals(what, options, -1)), group, point))
}

// parseNumber is numbers.parse(text, { group, point }).
func (r *Realm) parseNumber(c goja.FunctionCall) goja.Value {
	const what = "numbers.parse"
	group, point := r.separators(what, r.options(what, c.Argument(1), "group", "point"))
	read := func(text string) (float64, bool) { return ungrouped(text, group, point) }
	return r.parseNumeric(what, c.Argument(0), read, "a number with these signs")
}

func (r *Realm) parseNumeric(what string, v goja.Value, read func(string) (float64, bool), wanted string) goja.Value {
	f, ok := read(r.textArgument(what, v))
	if !ok || math.IsInf(f, 0) {
		panic(r.SyntaxError(what + ": the text is not " + wanted))
	}
	return r.Runtime.ToValue(f)
}

// formatBytes is numbers.formatBytes(bytes, { decimals, base }).
func (r *Realm) formatBytes(c goja.FunctionCall) goja.Value {
	const what = "numbers.formatBytes"
	f := r.finite(what, c.Argument(0))
	options := r.options(what, c.Argument(1), "decimals", "base")
	units := binaryUnits()
	if base := Option(options, "base"); !goja.IsUndefined(base) {
		switch n, _ := jsvalue.Finite(base); n {
		case 1000:
			units = decimalUnits()
		case 1024:
		default:
			panic(r.TypeError(what + ": base must be 1000 or 1024"))
		}
	}
	return r.Runtime.ToValue(sizeText(f, units, r.decimals(what, options, 1)))
}

// rounded formats a number with a number of decimals. It rounds halves of the shortest decimal form
// away from zero. If decimals is negative, all decimals are written.
func rounded(f float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(f), 'f', -1, 64)
	if decimals >= 0 {
		text = roundDigits(text, decimals)
	}
	if f < 0 && strings.Trim(text, "0.") != "" {
		return "-" + text
	}
	return text
}

func roundDigits(text string, decimals int) string {
	whole, fraction, _ := strings.Cut(text, ".")
	up := len(fraction) > decimals && fraction[decimals] >= '5'
	fraction = (fraction + strings.Repeat("0", decimals))[:decimals]
	digits := []byte("0" + whole + fraction)
	for i := len(digits) - 1; up && i >= 0; i-- {
		if digits[i]++; digits[i] <= '9' {
			break
		}
		digits[i] = '0'
	}
	whole = string(digits[:len(digits)-decimals])
	if whole[0] == '0' {
		whole = whole[1:]
	}
	if decimals == 0 {
		return whole
	}
	return whole + "." + string(digits[len(digits)-decimals:])
}

// grouped inserts separators into the output of rounded.
func grouped(text, group, point string) string {
	sign, text := cutSign(text)
	whole, fraction, _ := strings.Cut(text, ".")
	var b strings.Builder
	b.WriteString(sign)
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteString(group)
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString(point + fraction)
	}
	return b.String()
}

func cutSign(text string) (sign, rest string) {
	if strings.HasPrefix(text, "-") {
		return "-", text[1:]
	}
	return "", strings.TrimPrefix(text, "+")
}

// ungrouped parses the output of grouped. Groups have three digits, or there are none.
func ungrouped(text, group, point string) (float64, bool) {
	sign, text := cutSign(strings.TrimSpace(text))
	whole, fraction, pointed := strings.Cut(text, point)
	if group != "" && strings.Contains(whole, group) {
		parts := strings.Split(whole, group)
		for i, part := range parts {
			if len(part) != 3 && (i > 0 || part == "" || len(part) > 3) {
				return 0, false
			}
		}
		whole = strings.Join(parts, "")
	}
	if !digitsOnly(whole) || pointed && !digitsOnly(fraction) {
		return 0, false
	}
	f, err := strconv.ParseFloat(sign+whole+"."+fraction, 64)
	return f, err == nil
}

func digitsOnly(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// unit is the name of a unit, and its size in the smallest unit.
type unit struct {
	name string
	size float64
}

func binaryUnits() []unit {
	return []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50}}
}

func decimalUnits() []unit {
	return []unit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}
}

// durationUnits are in milliseconds, largest first.
func durationUnits() []unit {
	return []unit{{"w", 604_800_000}, {"d", 86_400_000}, {"h", 3_600_000}, {"m", 60_000}, {"s", 1_000}, {"ms", 1}}
}

// sizeText formats a number of bytes in the largest unit that fits.
func sizeText(bytes float64, units []unit, decimals int) string {
	i := 0
	for i+1 < len(units) && math.Abs(bytes) >= units[i+1].size {
		i++
	}
	if i == 0 {
		decimals = -1
	}
	text := rounded(bytes/units[i].size, decimals)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + units[i].name
}

// sizeOf reads a number with one unit behind it, of either kind; without one it
// is bytes.
func sizeOf(text string) (float64, bool) {
	digits := strings.TrimSpace(text)
	size := 1.0
	for _, u := range append(decimalUnits(), binaryUnits()[1:]...) {
		if n := len(digits) - len(u.name); n > 0 && strings.EqualFold(digits[n:], u.name) {
			size = u.size // a longer name comes later
		}
	}
	number := strings.TrimRight(digits, "abgikmptABGIKMPT")
	if number != digits && size == 1 && !strings.EqualFold(digits[len(number):], "B") {
		return 0, false
	}
	f, ok := ungrouped(number, "", ".")
	return f * size, ok && f >= 0
}

// durationText writes milliseconds as 1d2h3m4s5ms.
func durationText(ms float64) string {
	if ms == 0 {
		return "0s"
	}
	var b strings.Builder
	if ms < 0 {
		b.WriteByte('-')
	}
	left := math.Abs(ms)
	for _, u := range durationUnits()[1:] {
		if n := math.Floor(left / u.size); n > 0 {
			b.WriteString(strconv.FormatFloat(n, 'f', 0, 64) + u.name)
			left -= n * u.size
		}
	}
	return b.String()
}

// durationOf reads numbers with units, the larger ones first.
func durationOf(text string) (float64, bool) {
	sign, rest := cutSign(strings.ReplaceAll(strings.TrimSpace(text), " ", ""))
	if rest == "" {
		return 0, false
	}
	sum, units := 0.0, durationUnits()
	for rest != "" {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		name := rest[n : len(rest)-len(strings.TrimLeft(rest[n:], "wdhms"))]
		for len(units) > 0 && units[0].name != name {
			units = units[1:]
		}
		f, ok := ungrouped(rest[:n], "", ".")
		if !ok || len(units) == 0 {
			return 0, false
		}
		sum += f * units[0].size
		rest, units = rest[n+len(name):], units[1:]
	}
	if sign != "" {
		sum = -sum
	}
	return math.Round(sum), true
}
