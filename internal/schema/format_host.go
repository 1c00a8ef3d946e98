package schema

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
