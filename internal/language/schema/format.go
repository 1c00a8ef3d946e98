package schema

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

func isURI(s string) bool          { return isReference(s, false, false) }
func isURIReference(s string) bool { return isReference(s, true, false) }
func isIRI(s string) bool          { return isReference(s, false, true) }
func isIRIReference(s string) bool { return isReference(s, true, true) }

// Characters of RFC 3986 that URIs may hold beside letters, digits and escapes.
const (
	unreservedMarks = "-._~"
	subDelims       = "!$&'()*+,;="
	pathMarks       = unreservedMarks + subDelims + ":@/"
	queryMarks      = pathMarks + "?"
)

// isReference reports whether s is a URI (RFC 3986) or, when international, an
// IRI (RFC 3987): with a scheme, or without one when it may be relative.
func isReference(s string, relative, international bool) bool {
	s, fragment, _ := strings.Cut(s, "#")
	s, query, _ := strings.Cut(s, "?")
	if !isMadeOf(fragment, queryMarks, international) || !isMadeOf(query, queryMarks, international) {
		return false
	}
	scheme, rest, ok := strings.Cut(s, ":")
	hasScheme := ok && isScheme(scheme)
	if hasScheme {
		s = rest
	}
	if !hasScheme && (!relative || strings.Contains(firstSegment(s), ":")) {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		authority := firstSegment(rest)
		return isAuthority(authority, international) && isMadeOf(rest[len(authority):], pathMarks, international)
	}
	return isMadeOf(s, pathMarks, international)
}

// firstSegment returns s up to its first slash.
func firstSegment(s string) string {
	first, _, _ := strings.Cut(s, "/")
	return first
}

func isScheme(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || !isLetterOrDigit(r) && !strings.ContainsRune("+-.", r)) {
			return false
		}
	}
	return s != ""
}

// isAuthority reports whether s is the authority of a URI (RFC 3986 section 3.2).
func isAuthority(s string, international bool) bool {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		if !isMadeOf(s[:at], unreservedMarks+subDelims+":", international) {
			return false
		}
		s = s[at+1:]
	}
	host, port := s, ""
	if end := strings.LastIndexByte(s, ']'); strings.HasPrefix(s, "[") && end > 0 {
		host, port = s[:end+1], s[end+1:]
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 {
		host, port = s[:colon], s[colon:]
	}
	if port != "" && (port[0] != ':' || strings.Trim(port[1:], "0123456789") != "") {
		return false
	}
	if strings.HasPrefix(host, "[") {
		return isIPLiteral(host)
	}
	return isMadeOf(host, unreservedMarks+subDelims, international)
}

// isIPLiteral reports whether s is an IP-literal (RFC 3986 section 3.2.2).
func isIPLiteral(s string) bool {
	inside := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if len(inside) > 0 && (inside[0] == 'v' || inside[0] == 'V') {
		version, address, ok := strings.Cut(inside[1:], ".")
		return ok && version != "" && strings.Trim(version, "0123456789abcdefABCDEF") == "" &&
			address != "" && !strings.Contains(address, "%") && isMadeOf(address, unreservedMarks+subDelims+":", false)
	}
	return len(inside) == len(s)-2 && isIPv6(inside)
}

// isMadeOf reports whether s holds letters, digits, escapes and marks alone,
// and, when international, characters beyond ASCII.
func isMadeOf(s, marks string, international bool) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
			i += 2
		case c >= utf8.RuneSelf:
			if !international {
				return false
			}
		case !isLetterOrDigit(rune(c)) && strings.IndexByte(marks, c) < 0:
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isURITemplate reports whether s is a URI template (RFC 6570 section 2, with
// the apostrophe of erratum 6937).
func isURITemplate(s string) bool {
	for s != "" {
		literal, rest, open := strings.Cut(s, "{")
		if !isMadeOf(literal, "!#$&'()*+,-./:;=?@[]_~", true) {
			return false
		}
		if !open {
			return true
		}
		expression, rest, closed := strings.Cut(rest, "}")
		if !closed || !isExpression(expression) {
			return false
		}
		s = rest
	}
	return true
}

// isExpression reports whether s is what stands in the braces of a URI template.
func isExpression(s string) bool {
	if s != "" && strings.IndexByte("+#./;?&=,!@|", s[0]) >= 0 {
		s = s[1:]
	}
	for variable := range strings.SplitSeq(s, ",") {
		name, length, prefixed := strings.Cut(variable, ":")
		if prefixed {
			if n := digits(length); n < 1 || n > 9999 || length[0] == '0' {
				return false
			}
		} else {
			name = strings.TrimSuffix(name, "*")
		}
		if name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || !isMadeOf(name, "_.", false) {
			return false
		}
	}
	return true
}

// isHostname reports whether s is a host name (RFC 1123 section 2.1).
func isHostname(s string) bool { return isHost(s, isLetterOrDigit) }

// isIDNHostname reports whether s is a host name that may have characters of
// any script. Which of them IDNA (RFC 5892) allows where is not checked.
func isIDNHostname(s string) bool {
	for _, dot := range []string{"。", "．", "｡"} {
		s = strings.ReplaceAll(s, dot, ".")
	}
	return isHost(s, func(r rune) bool {
		return isLetterOrDigit(r) || r >= utf8.RuneSelf && (unicode.IsGraphic(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Join_Control, r))
	})
}

func isLetterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// isHost reports whether s is a row of labels of allowed characters and
// hyphens.
func isHost(s string, allowed func(rune) bool) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if r != '-' && !allowed(r) {
				return false
			}
		}
	}
	return true
}

// isIPv4 reports whether s is a dotted quad (RFC 2673 section 3.2).
func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

// isIPv6 reports whether s is an IPv6 address (RFC 4291 section 2.2), without a zone.
func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// isEmail reports whether s is a mailbox (RFC 5321 section 4.1.2).
func isEmail(s string) bool { return isMailbox(s, isHostname, false) }

// isIDNEmail reports whether s is a mailbox that may have letters of any
// script (RFC 6531 section 3.3).
func isIDNEmail(s string) bool { return isMailbox(s, isIDNHostname, true) }

func isMailbox(s string, isHost func(string) bool, international bool) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	return isLocalPart(local, international) && (isHost(domain) || isAddressLiteral(domain))
}

func isLocalPart(s string, international bool) bool {
	quoted := len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"'
	if quoted {
		return isQuotedText(s[1:len(s)-1], international)
	}
	if s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	for _, r := range s {
		if !isLetterOrDigit(r) && !strings.ContainsRune(".!#$%&'*+-/=?^_`{|}~", r) && (r < utf8.RuneSelf || !international) {
			return false
		}
	}
	return true
}

func isQuotedText(s string, international bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) || s[i] < ' ' || s[i] >= 0x7f {
				return false
			}
		case c == '"' || c < ' ' || c == 0x7f || c > 0x7f && !international:
			return false
		}
	}
	return true
}

// isAddressLiteral reports whether s is an address in brackets.
func isAddressLiteral(s string) bool {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return false
	}
	inside := s[1 : len(s)-1]
	if v6, ok := strings.CutPrefix(inside, "IPv6:"); ok {
		return isIPv6(v6)
	}
	return isIPv4(inside)
}
