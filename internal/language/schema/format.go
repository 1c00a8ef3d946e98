package schema

import (
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// format is an asserted value of the keyword format.
type format struct {
	name string
	// words describe a valid string.
	words string
	valid func(string) bool
	// cost is the number of additional steps for each byte.
	cost int
}

// formats are the formats of draft 2020-12 validation section 7.3.
var formats = formatsByName([]*format{
	{name: "date", words: "a date, like 2026-07-28", valid: isDate},
	{name: "time", words: "a time with its offset, like 14:30:00Z", valid: isTime, cost: 1},
	{name: "date-time", words: "a date and time with its offset, like 2026-07-28T14:30:00Z", valid: isDateTime, cost: 1},
	{name: "duration", words: "a duration, like P3DT4H", valid: matcher(durationForm), cost: 5},
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
	{name: "uri-template", words: "a URI template, like /orders/{id}", valid: matcher(templateForm), cost: 2},
	{name: "uuid", words: "a UUID, like 123e4567-e89b-12d3-a456-426614174000", valid: matcher(uuidForm), cost: 1},
	{name: "regex", words: "a regular expression (RE2, at most 4096 bytes)", valid: isPattern, cost: 5},
	{name: "json-pointer", words: "a JSON pointer, like /items/0", valid: isPointer, cost: 2},
	{name: "relative-json-pointer", words: "a relative JSON pointer, like 1/name", valid: matcher(`(?s)` + relativeForm), cost: 2},
})

// annotations are formats of other dialects without assertions. They are ignored without a
// warning.
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

// matcher returns a function that matches a pattern. The pattern is compiled on first use.
func matcher(pattern string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(s string) bool { return compiled().MatchString(s) }
}

func formatNames() []string { return sortedNames(formats) }

// Formats that are regular languages.
const (
	uuidForm     = `^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`
	pointerForm  = `(/([^~]|~[01])*)?` // RFC 6901 section 3
	relativeForm = `^(0|[1-9][0-9]*)(#|` + pointerForm + `)$`
	// durationForm allows no gap between units (RFC 3339 appendix A).
	durationForm = `^P([0-9]+W|` + dateForm + `(T` + clockForm + `)?|T` + clockForm + `)$`
	dateForm     = `([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)`
	clockForm    = `([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)`
)

// isPointer reports whether s is a JSON pointer.
var isPointer = matcher(`(?s)^` + pointerForm + `$`)

// isDate reports whether s is a full-date (RFC 3339 section 5.6). The length check avoids the
// error of the parser, which would quote a long text.
func isDate(s string) bool {
	if len(s) != len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isTime reports whether s is a full-time (RFC 3339 section 5.6). A leap second must be the
// last second of a day in UTC.
func isTime(s string) bool {
	if !hasTimeForm(s) {
		return false
	}
	if s[6:8] != "60" {
		return true
	}
	t, err := time.Parse("15:04:05Z07:00", strings.ToUpper(s[:6]+"59"+s[8:]))
	return err == nil && t.UTC().Format("15:04") == "23:59"
}

var hasTimeForm = matcher(`^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// isDateTime reports whether s is a date-time (RFC 3339 section 5.6).
func isDateTime(s string) bool {
	return len(s) > 10 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

func isURI(s string) bool          { return isReference(s, false, false) }
func isURIReference(s string) bool { return isReference(s, true, false) }
func isIRI(s string) bool          { return isReference(s, false, true) }
func isIRIReference(s string) bool { return isReference(s, true, true) }

// Characters of RFC 3986 that URIs may contain besides letters, digits and escapes.
const (
	unreservedMarks = "-._~"
	subDelims       = "!$&'()*+,;="
	pathMarks       = unreservedMarks + subDelims + ":@/"
	queryMarks      = pathMarks + "?"
)

// isReference reports whether s is a URI (RFC 3986), or an IRI (RFC 3987) if international. If
// relative, the scheme is optional.
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

// isScheme reports whether s is a scheme (RFC 3986 section 3.1).
func isScheme(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return s != "" && strings.IndexByte(letters, s[0]) >= 0 && strings.Trim(s, letters+"0123456789+-.") == ""
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
	inside, closed := strings.CutSuffix(s[1:], "]")
	if len(inside) > 0 && (inside[0] == 'v' || inside[0] == 'V') {
		version, address, ok := strings.Cut(inside[1:], ".")
		return closed && ok && version != "" && strings.Trim(version, "0123456789abcdefABCDEF") == "" &&
			address != "" && !strings.Contains(address, "%") && isMadeOf(address, unreservedMarks+subDelims+":", false)
	}
	return closed && isIPv6(inside)
}

// isMadeOf reports whether s contains only letters, digits, escapes and marks, and characters
// beyond ASCII if international.
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

// The forms of a URI template (RFC 6570 section 2, with the apostrophe of erratum 6937) and of
// a variable in it.
const (
	templateForm = `^([A-Za-z0-9!#$&'()*+,./:;=?@\[\]_~\x{80}-\x{10FFFF}-]|%[0-9A-Fa-f]{2}|\{[+#./;?&=,!@|]?` + variableForm + `(,` + variableForm + `)*\})*$`
	variableForm = `([A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(\.([A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*(:[1-9][0-9]{0,3}|\*)?`
)

// isHostname reports whether s is a host name (RFC 1123 section 2.1).
func isHostname(s string) bool { return isHost(s, isLetterOrDigit) }

// isIDNHostname reports whether s is a host name in any script. It does not check the rules of
// IDNA (RFC 5892) for characters.
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

// isHost reports whether s is a sequence of labels with allowed characters and hyphens.
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
func isEmail(s string) bool { return isMailbox(s, isLocalPart, isHostname) }

// isIDNEmail reports whether s is a mailbox in any script (RFC 6531 section 3.3).
func isIDNEmail(s string) bool { return isMailbox(s, isIDNLocalPart, isIDNHostname) }

func isMailbox(s string, isLocal, isHost func(string) bool) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	return isLocal(local) && (isHost(domain) || isAddressLiteral(domain))
}

var isLocalPart, isIDNLocalPart = matcher(localForm("")), matcher(localForm(`\x{80}-\x{10FFFF}`))

// localForm is the form of the part before the @, with more allowed characters.
func localForm(more string) string {
	atom := "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" + more + "-]+"
	return `^(` + atom + `(\.` + atom + `)*|"([ !#-\[\]-~` + more + `]|\\[ -~])*")$`
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
