package schema

import "strings"

// A format is a value of the keyword format that is asserted.
type format struct {
	name string
	// words say what a string must be.
	words string
	valid func(string) bool
	// cost is how many steps it takes for each byte, beyond what goes without saying.
	cost int
}

// formats are those of draft 2020-12 validation section 7.3.
var formats = formatsByName([]*format{
	{name: "date", words: "a date, like 2026-07-28", valid: isDate},
	{name: "time", words: "a time with its offset, like 14:30:00Z", valid: isTime},
	{name: "date-time", words: "a date and time with its offset, like 2026-07-28T14:30:00Z", valid: isDateTime},
	{name: "duration", words: "a duration, like P3DT4H", valid: isDuration},
	{name: "email", words: "an email address, like name@example.com", valid: isEmail},
	{name: "idn-email", words: "an email address, like name@example.com", valid: isIDNEmail},
	{name: "hostname", words: "a host name, like api.example.com", valid: isHostname},
	{name: "idn-hostname", words: "a host name, like api.example.com", valid: isIDNHostname},
	{name: "ipv4", words: "an IPv4 address, like 192.0.2.1", valid: isIPv4},
	{name: "ipv6", words: "an IPv6 address, like 2001:db8::1", valid: isIPv6},
	{name: "uri", words: "a URI, like https://example.com/path", valid: isURI},
	{name: "uri-reference", words: "a URI or a relative reference, like /path?query", valid: isURIReference},
	{name: "iri", words: "an IRI, like https://example.com/path", valid: isIRI},
	{name: "iri-reference", words: "an IRI or a relative reference, like /path?query", valid: isIRIReference},
	{name: "uri-template", words: "a URI template, like /orders/{id}", valid: isURITemplate},
	{name: "uuid", words: "a UUID, like 123e4567-e89b-12d3-a456-426614174000", valid: isUUID},
	{name: "regex", words: "a regular expression (RE2, at most 4096 bytes)", valid: isPattern, cost: 5},
	{name: "json-pointer", words: "a JSON pointer, like /items/0", valid: isPointer},
	{name: "relative-json-pointer", words: "a relative JSON pointer, like 1/name", valid: isRelativePointer},
})

// annotations are formats of other dialects that say nothing to assert; they
// are passed over without a word.
var annotations = map[string]bool{
	"int8": true, "int16": true, "int32": true, "int64": true, "uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true,
	"float": true, "double": true, "decimal": true, "byte": true, "binary": true, "password": true, "markdown": true, "html": true, "color": true,
}

func formatsByName(list []*format) map[string]*format {
	m := map[string]*format{}
	for _, f := range list {
		m[f.name] = f
	}
	return m
}

func formatNames() []string { return sortedNames(formats) }

// isUUID reports whether s is a UUID in its textual form (RFC 9562 section 4).
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// isPointer reports whether s is a JSON pointer (RFC 6901 section 3).
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

// isRelativePointer reports whether s is a relative JSON pointer.
func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	up := s[:len(s)-len(rest)]
	if up == "" || len(up) > 1 && up[0] == '0' {
		return false
	}
	return rest == "#" || isPointer(rest)
}

// isDate reports whether s is a full-date (RFC 3339 section 5.6).
func isDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	year, month, day := digits(s[:4]), digits(s[5:7]), digits(s[8:])
	return year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= days(year, month)
}

func days(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// digits returns the number that s writes in digits alone, of at most nine, or
// -1.
func digits(s string) int {
	if s == "" || len(s) > 9 {
		return -1
	}
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isTime reports whether s is a full-time (RFC 3339 section 5.6). A leap
// second can only be the last of a day in UTC.
func isTime(s string) bool {
	if len(s) < len("00:00:00Z") || s[2] != ':' || s[5] != ':' {
		return false
	}
	hour, minute, second := digits(s[:2]), digits(s[3:5]), digits(s[6:8])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return false
	}
	rest := s[8:]
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		rest = strings.TrimLeft(fraction, "0123456789")
		if len(rest) == len(fraction) {
			return false
		}
	}
	offset, ok := timeOffset(rest)
	const day = 24 * 60
	return ok && (second < 60 || (hour*60+minute-offset+day)%day == day-1)
}

// timeOffset returns the minutes of a time-offset (RFC 3339 section 5.6).
func timeOffset(s string) (minutes int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+00:00") || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute := digits(s[1:3]), digits(s[4:])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	minutes = hour*60 + minute
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// isDateTime reports whether s is a date-time (RFC 3339 section 5.6).
func isDateTime(s string) bool {
	return len(s) > 10 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

// isDuration reports whether s is a duration (RFC 3339 appendix A), which
// leaves out no unit between two others.
func isDuration(s string) bool {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok {
		return false
	}
	if weeks, ok := strings.CutSuffix(rest, "W"); ok {
		return weeks != "" && strings.Trim(weeks, "0123456789") == ""
	}
	date, clock, timed := strings.Cut(rest, "T")
	return rest != "" && hasUnits(date, "YMD") && (!timed || clock != "" && hasUnits(clock, "HMS"))
}

// hasUnits reports whether s is a row of numbers, each with one of the units
// after it, in their order and without a gap.
func hasUnits(s, units string) bool {
	for first := true; s != ""; first = false {
		rest := strings.TrimLeft(s, "0123456789")
		if rest == "" || len(rest) == len(s) {
			return false
		}
		i := strings.IndexByte(units, rest[0])
		if i < 0 || i > 0 && !first {
			return false
		}
		s, units = rest[1:], units[i+1:]
	}
	return true
}
