package definition

import (
	"net/netip"
	"net/url"
	"strings"
)

// HasScheme reports whether s starts with a scheme followed by more text.
func HasScheme(s string) bool {
	scheme, rest, _ := strings.Cut(s, ":")
	return scheme != "" && rest != "" && strings.Trim(scheme, letters+digits+"+-.") == "" && strings.Contains(letters, scheme[:1])
}

// BadURIByte returns the offset of the first byte that is invalid in a URI (RFC 3986 section
// 2), or -1.
func BadURIByte(s string) int {
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || strings.Trim(s[i+1:i+3], digits+"abcdefABCDEF") != "" {
				return i
			}
		case c <= ' ', c >= 0x7f, strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return i
		}
	}
	return -1
}

// HostOf returns the host of a URL, with an IPv6 address in brackets.
func HostOf(u *url.URL) string {
	if strings.Contains(u.Hostname(), ":") {
		return "[" + u.Hostname() + "]"
	}
	return u.Hostname()
}

// IsLoopback reports whether a host name or address is loopback by itself, without DNS.
func IsLoopback(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || addr.IsLoopback()
}

// maxHost is the maximum length of a DNS name (RFC 1035 section 2.3.4).
const maxHost = 253

func IsHostName(name string) bool {
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && addr.Is6() && addr.Zone() == "" && strings.HasSuffix(name, "]")
	}
	if name == "" || len(name) > maxHost {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || len(part) > 63 || part[0] == '-' || part[len(part)-1] == '-' || strings.Trim(part, WordCharacters+"-*") != "" {
			return false
		}
	}
	return true
}
