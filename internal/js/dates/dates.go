// Package dates parses, formats and computes dates, for the object dates of scripts. It does not
// depend on scripts. Start at [Format] and [Parse]; [Add], [Diff] and [StartOf] are the arithmetic.
package dates

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // worker processes cannot open files
)

// Errors for the author of a pattern.
var (
	ErrPattern = errors.New("a pattern is made of YYYY MM DD HH mm ss SSS and Z, M D H m s hh h A, MMM MMMM ddd dddd, and text in [brackets]")
	errNoDate  = errors.New("the text does not match this pattern")
	ErrISO     = errors.New("the text is not an ISO 8601 date, such as 2026-03-29 or 2026-03-29T12:00:00Z; other forms need a pattern")
)

// dateTokens are the tokens of patterns, the longest of each letter first.
var dateTokens = []string{"YYYY", "MMMM", "MMM", "MM", "M", "DD", "D", "dddd", "ddd", "HH", "H", "hh", "h", "mm", "m", "ss", "s", "SSS", "A", "Z"}

// dateToken returns the token or the literal at the start of a pattern, and the rest.
func dateToken(pattern string) (token, text, rest string, err error) {
	for _, token := range dateTokens {
		if strings.HasPrefix(pattern, token) {
			return token, "", pattern[len(token):], nil
		}
	}
	switch c := pattern[0]; {
	case c == '[':
		end := strings.IndexByte(pattern, ']')
		if end < 0 {
			return "", "", "", ErrPattern
		}
		return "", pattern[1:end], pattern[end+1:], nil
	case c >= 'a' && c <= 'z' && c != 'T', c >= 'A' && c <= 'Z' && c != 'T':
		return "", "", "", ErrPattern
	}
	return "", pattern[:1], pattern[1:], nil
}

func Format(t time.Time, pattern string) (string, error) {
	var out []byte
	for pattern != "" {
		token, text, rest, err := dateToken(pattern)
		if err != nil {
			return "", err
		}
		out, pattern = append(appendDate(out, t, token), text...), rest
	}
	return string(out), nil
}

func appendDate(out []byte, t time.Time, token string) []byte {
	hour := (t.Hour()+11)%12 + 1
	switch token {
	case "YYYY":
		return fmt.Appendf(out, "%04d", t.Year())
	case "MMMM", "MMM", "dddd", "ddd", "A", "Z":
		layouts := map[string]string{"MMMM": "January", "MMM": "Jan", "dddd": "Monday", "ddd": "Mon", "A": "PM", "Z": "-07:00"}
		return t.AppendFormat(out, layouts[token])
	case "SSS":
		return fmt.Appendf(out, "%03d", t.Nanosecond()/1e6)
	}
	values := map[byte]int{'M': int(t.Month()), 'D': t.Day(), 'H': t.Hour(), 'h': hour, 'm': t.Minute(), 's': t.Second()}
	if token == "" {
		return out
	}
	return fmt.Appendf(out, "%0*d", len(token), values[token[0]])
}

// dateFields are the parsed fields of a date.
type dateFields struct {
	year, month, day, hour, minute, second, millis int
	afternoon, hour12                              bool
	zone                                           *time.Location
}

// Parse parses a date with a pattern. zone is the default zone.
func Parse(text, pattern string, zone *time.Location) (time.Time, error) {
	f := dateFields{year: 1970, month: 1, day: 1, zone: zone}
	for pattern != "" {
		token, literal, rest, err := dateToken(pattern)
		if err != nil {
			return time.Time{}, err
		}
		var ok bool
		if token == "" {
			text, ok = strings.CutPrefix(text, literal)
		} else {
			text, ok = f.read(token, text)
		}
		if !ok {
			return time.Time{}, errNoDate
		}
		pattern = rest
	}
	if text != "" {
		return time.Time{}, errNoDate
	}
	return f.time()
}

// read parses the value of a token at the start of text.
func (f *dateFields) read(token, text string) (rest string, ok bool) {
	switch token {
	case "MMMM", "MMM":
		var n int
		n, rest = named12(text, token == "MMM", 12, func(i int) string { return time.Month(i + 1).String() })
		f.month = n + 1
		return rest, n >= 0
	case "dddd", "ddd":
		n, rest := named12(text, token == "ddd", 7, func(i int) string { return time.Weekday(i).String() })
		return rest, n >= 0
	case "A":
		f.hour12 = true
		n, rest := named12(text, false, 2, func(i int) string { return [...]string{"AM", "PM"}[i] })
		f.afternoon = n == 1
		return rest, n >= 0
	case "Z":
		return f.offset(text)
	}
	least, limit := len(token), max(2, len(token))
	n := 0
	for n < len(text) && n < limit && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n < least {
		return "", false
	}
	value, _ := strconv.Atoi(text[:n])
	fields := map[string]*int{"Y": &f.year, "M": &f.month, "D": &f.day, "H": &f.hour, "h": &f.hour, "m": &f.minute, "s": &f.second, "S": &f.millis}
	*fields[token[:1]] = value
	f.hour12 = f.hour12 || token[0] == 'h'
	return text[n:], true
}

// named12 returns the index of the name at the start of text, in any case; -1 if there is none.
// Short names have three letters.
func named12(text string, short bool, count int, name func(int) string) (found int, rest string) {
	for i := range count {
		word := name(i)
		if short {
			word = word[:3]
		}
		if len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) {
			return i, text[len(word):]
		}
	}
	return -1, ""
}

func (f *dateFields) offset(text string) (rest string, ok bool) {
	if strings.HasPrefix(text, "Z") {
		f.zone = time.UTC
		return text[1:], true
	}
	for _, layout := range []string{"-07:00", "-0700"} {
		if len(text) >= len(layout) {
			if t, err := time.Parse(layout, text[:len(layout)]); err == nil {
				_, seconds := t.Zone()
				f.zone = time.FixedZone("", seconds)
				return text[len(layout):], true
			}
		}
	}
	return "", false
}

func (f *dateFields) time() (time.Time, error) {
	if f.hour12 {
		if f.hour < 1 || f.hour > 12 {
			return time.Time{}, errNoDate
		}
		if f.hour %= 12; f.afternoon {
			f.hour += 12
		}
	}
	if f.month < 1 || f.month > 12 || f.day < 1 || f.day > daysIn(f.year, time.Month(f.month)) || f.hour > 23 || f.minute > 59 || f.second > 59 {
		return time.Time{}, errNoDate
	}
	return time.Date(f.year, time.Month(f.month), f.day, f.hour, f.minute, f.second, f.millis*1e6, f.zone), nil
}

// ParseISO parses a date in the form of ISO 8601 and RFC 3339.
func ParseISO(text string, zone *time.Location) (time.Time, error) {
	if len(text) > 10 && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, ErrISO
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// addMonths adds calendar months. A day that the month lacks becomes its last day.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	day := min(t.Day(), daysIn(first.Year(), first.Month()))
	return time.Date(first.Year(), first.Month(), day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// Add adds n units. Days and larger units follow the calendar; smaller units are exact.
func Add(t time.Time, unit string, n int) (time.Time, bool) {
	switch unit {
	case "year":
		return addMonths(t, 12*n), true
	case "month":
		return addMonths(t, n), true
	case "week":
		return t.AddDate(0, 0, 7*n), true
	case "day":
		return t.AddDate(0, 0, n), true
	}
	exact, ok := exactUnits[unit]
	return time.UnixMilli(t.UnixMilli() + int64(n)*exact.Milliseconds()).In(t.Location()), ok
}

// exactUnits have a fixed length.
var exactUnits = map[string]time.Duration{"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond}

// Diff returns the number of complete units between two dates; negative if to is before from.
func Diff(from, to time.Time, unit string) (int, bool) {
	apart := to.UnixMilli() - from.UnixMilli()
	if exact, ok := exactUnits[unit]; ok {
		return int(apart / exact.Milliseconds()), true
	}
	if apart < 0 {
		n, ok := Diff(to, from, unit)
		return -n, ok
	}
	days := map[string]float64{"year": 365.2425, "month": 30.436875, "week": 7, "day": 1}[unit]
	if days == 0 {
		return 0, false
	}
	// Years, months and days have different lengths.
	n := int(float64(apart) / (days * 86_400_000))
	n -= min(n, 2)
	for {
		next, _ := Add(from, unit, n+1)
		if next.After(to) {
			return n, true
		}
		n++
	}
}

// StartOf returns the start of the unit of t. Weeks start on Monday.
func StartOf(t time.Time, unit string) (time.Time, bool) {
	year, month, day := t.Date()
	midnight := func(month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, t.Location())
	}
	into := time.Duration(t.Nanosecond())
	switch unit {
	case "year":
		return midnight(1, 1), true
	case "quarter":
		return midnight(month-(month-1)%3, 1), true
	case "month":
		return midnight(month, 1), true
	case "week":
		return midnight(month, day-(int(t.Weekday())+6)%7), true
	case "day":
		return midnight(month, day), true
	case "hour":
		into += time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	case "minute":
		into += time.Duration(t.Second()) * time.Second
	case "second":
	default:
		return t, false
	}
	return t.Add(-into), true
}
