package schema

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
