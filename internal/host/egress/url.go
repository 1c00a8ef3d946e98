package egress

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const (
	maxURL          = 8 << 10 // bytes
	maxHost         = 253     // RFC 1035 section 2.3.4
	maxLabel        = 63
	maxPathVariants = 4
)

// parsedURL is an unambiguous URL in canonical form.
type parsedURL struct {
	scheme string // "http" or "https"
	host   string // a lower-case name without a final dot, or an IP address
	port   string // never empty
	url    *url.URL
	// pathVariants are the path as written, and as read by servers that unescape it once, twice
	// and so on, until nothing changes.
	pathVariants []string
}

// hostport returns "host:port", with brackets around an IPv6 address.
func (u *parsedURL) hostport() string { return net.JoinHostPort(u.host, u.port) }

// sameOrigin reports whether both have the same scheme, host and port (RFC 6454).
func (u *parsedURL) sameOrigin(b *parsedURL) bool {
	return u.scheme == b.scheme && u.host == b.host && u.port == b.port
}

func invalid(format string, args ...any) *scripting.HostError {
	return newHostError(scripting.Invalid, format, args...)
}

// parseURL parses a URL as RFC 3986 defines it, and rejects everything that programs interpret
// differently.
func parseURL(raw string) (*parsedURL, error) {
	if len(raw) > maxURL {
		return nil, invalid("the URL is longer than %d bytes", maxURL)
	}
	for i := range len(raw) {
		if !isURLByte(raw[i]) {
			return nil, invalid("the URL contains a character that must be percent-encoded (encodeURIComponent)")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, invalid("the URL is malformed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("the URL must start with https:// or http://")
	case u.Opaque != "" || u.Host == "":
		return nil, invalid("the URL has no host")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return nil, invalid("the URL must not contain a user or a password")
	case strings.Contains(raw, "#"):
		return nil, invalid("the URL must not have a fragment (#)")
	}
	a := &parsedURL{scheme: u.Scheme}
	if a.host, a.port, err = splitAuthority(u); err != nil {
		return nil, err
	}
	if a.pathVariants, err = decodePath(u.EscapedPath()); err != nil {
		return nil, err
	}
	u.Host = a.host
	if strings.Contains(a.host, ":") {
		u.Host = "[" + a.host + "]"
	}
	if a.port != defaultPort(a.scheme) {
		u.Host = a.hostport()
	}
	if u.Path == "" {
		u.Path = "/"
	}
	a.url = u
	return a, nil
}

// isURLByte reports whether RFC 3986 allows a byte in a URL.
func isURLByte(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune("\"<>\\^`{|}", rune(c))
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// splitAuthority returns the canonical host and port. The two well-known ports require their
// schemes, so that a secret intended for TLS is never sent in the clear.
func splitAuthority(u *url.URL) (host, port string, err error) {
	port = u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", "", invalid("the port of the URL is empty")
		}
		port = defaultPort(u.Scheme)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "", "", invalid("the port of the URL is malformed")
	}
	if port == "443" && u.Scheme == "http" || port == "80" && u.Scheme == "https" {
		return "", "", invalid("port %s does not fit %s://", port, u.Scheme)
	}
	bracketed := strings.HasPrefix(u.Host, "[")
	host, ok := canonicalHost(u.Hostname(), bracketed)
	if !ok {
		return "", "", invalid("the host of the URL is malformed; write names in ASCII, IPv4 addresses as four decimals, IPv6 addresses in brackets and without a zone")
	}
	return host, port, nil
}

// canonicalHost returns the canonical spelling of a name or an address.
func canonicalHost(host string, bracketed bool) (string, bool) {
	if bracketed || strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil || !bracketed || ip.Is4() || ip.Zone() != "" {
			return "", false
		}
		return ip.Unmap().String(), true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > maxHost {
		return "", false
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if !isLabel(l) {
			return "", false
		}
	}
	// Most programs read a name that ends in a number as an IPv4 address (WHATWG URL, section
	// 3.5), but not the same one.
	if last := labels[len(labels)-1]; isNumber(last) {
		ip, err := netip.ParseAddr(host)
		return host, err == nil && ip.Is4()
	}
	return host, true
}

func isLabel(l string) bool {
	if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	return strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" // only allowed characters
}

// isNumber reports whether a label is a decimal, octal or hexadecimal number.
func isNumber(l string) bool {
	if digits, hex := strings.CutPrefix(l, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

// decodePath returns the variants of a path, and rejects one with a dot segment in any of them:
// parts of the path may come from anyone.
func decodePath(escaped string) ([]string, error) {
	if escaped == "" {
		escaped = "/"
	}
	readings := []string{escaped}
	for reading := escaped; ; {
		if hasDotSegment(reading) {
			return nil, invalid("the path of the URL has a . or .. segment, plain or encoded")
		}
		next, err := url.PathUnescape(reading)
		if err != nil || next == reading {
			return readings, nil
		}
		if !isText(next) {
			return nil, invalid("the path of the URL encodes bytes that are not text")
		}
		if len(readings) == maxPathVariants {
			return nil, invalid("the path of the URL is percent-encoded more than %d times", maxPathVariants-1)
		}
		readings = append(readings, next)
		reading = next
	}
}

// hasDotSegment reports whether a segment is . or .., also for servers that treat a backslash
// as a slash or cut parameters off a segment.
func hasDotSegment(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		name, _, _ := strings.Cut(segment, ";")
		if name == "." || name == ".." {
			return true
		}
	}
	return false
}

// isText reports whether s is UTF-8 without control characters.
func isText(s string) bool {
	control := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	return utf8.ValidString(s) && !control
}

// allowlist holds the hosts, methods and paths of a grant.
type allowlist struct {
	hosts   []hostPattern
	methods []string
	paths   []string // empty means all
}

// hostPattern is one of the hosts of a grant.
type hostPattern struct {
	host       string // canonical; matches names below it if subdomains is set
	port       string
	subdomains bool
}

func newAllowlist(g grant.HTTP) allowlist {
	p := allowlist{methods: g.Methods, paths: g.Paths}
	if len(p.methods) == 0 {
		p.methods = []string{"GET", "HEAD"}
	}
	for _, h := range g.Hosts {
		if pattern, ok := parseHostPattern(h); ok {
			p.hosts = append(p.hosts, pattern)
		}
	}
	return p
}

// parseHostPattern parses "host:port" or "*.host:port". An invalid pattern matches nothing.
func parseHostPattern(s string) (hostPattern, bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return hostPattern{}, false
	}
	host, below := strings.CutPrefix(host, "*.")
	host, ok := canonicalHost(host, strings.HasPrefix(s, "["))
	if _, err := netip.ParseAddr(host); err == nil && below {
		return hostPattern{}, false
	}
	return hostPattern{host: host, port: port, subdomains: below}, ok
}

func (h hostPattern) covers(a *parsedURL) bool {
	if h.port != a.port {
		return false
	}
	if h.subdomains {
		return strings.HasSuffix(a.host, "."+h.host)
	}
	return a.host == h.host
}

func (l allowlist) check(method string, a *parsedURL) error {
	if !slices.ContainsFunc(l.hosts, func(h hostPattern) bool { return h.covers(a) }) {
		return newHostError(scripting.NotGranted, "%s is not among the hosts of the grant", a.hostport())
	}
	if !slices.Contains(l.methods, method) {
		return newHostError(scripting.NotGranted, "%s is not among the methods of the grant", method)
	}
	if len(l.paths) > 0 && !slices.ContainsFunc(l.paths, func(pattern string) bool { return coversPath(pattern, a.pathVariants) }) {
		return newHostError(scripting.NotGranted, "the path of the URL is not among the paths of the grant")
	}
	return nil
}

// coversPath reports whether a pattern matches a path in every variant.
func coversPath(pattern string, readings []string) bool {
	stars := strings.Count(pattern, "*")
	for _, reading := range readings {
		if !matchesPattern(pattern, reading) {
			return false
		}
		if next, err := url.PathUnescape(pattern); err == nil {
			pattern = next
		}
		if strings.Count(pattern, "*") != stars {
			return false // an escaped star is a literal
		}
	}
	return true
}

// matchesPattern reports whether a pattern, with * for any sequence of characters, matches all
// of s. It takes linear time in s for each star.
func matchesPattern(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, head)
	for ok && star {
		head, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, head)
		}
		_, s, ok = strings.Cut(s, head)
	}
	return ok
}
