package egress

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// permit is what a grant lets a request be.
type permit struct {
	hosts   []hostPattern
	methods []string
	paths   []string // none means all
}

// hostPattern is one of the hosts of a grant.
type hostPattern struct {
	host  string // canonical; of a name below it when below is set
	port  string
	below bool
}

func newPermit(g grant.HTTP) permit {
	p := permit{methods: g.Methods, paths: g.Paths}
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

// parseHostPattern reads "host:port" or "*.host:port". What it cannot read
// covers nothing.
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
	return hostPattern{host: host, port: port, below: below}, ok
}

func (h hostPattern) covers(a *address) bool {
	if h.port != a.port {
		return false
	}
	if h.below {
		return strings.HasSuffix(a.host, "."+h.host)
	}
	return a.host == h.host
}

// check returns why a request is not covered, or nil.
func (p permit) check(method string, a *address) error {
	if !slices.ContainsFunc(p.hosts, func(h hostPattern) bool { return h.covers(a) }) {
		return fault(scripting.NotGranted, "%s is not among the hosts of the grant", a.hostport())
	}
	if !slices.Contains(p.methods, method) {
		return fault(scripting.NotGranted, "%s is not among the methods of the grant", method)
	}
	if len(p.paths) > 0 && !slices.ContainsFunc(p.paths, func(pattern string) bool { return coversPath(pattern, a.readings) }) {
		return fault(scripting.NotGranted, "the path of the URL is not among the paths of the grant")
	}
	return nil
}

// coversPath reports whether a pattern covers a path in every reading.
func coversPath(pattern string, readings []string) bool {
	stars := strings.Count(pattern, "*")
	for _, reading := range readings {
		if !matches(pattern, reading) {
			return false
		}
		if next, err := url.PathUnescape(pattern); err == nil {
			pattern = next
		}
		if strings.Count(pattern, "*") != stars {
			return false // an escaped star is a letter, not a pattern
		}
	}
	return true
}

// matches reports whether a pattern, in which * stands for any run of
// characters, covers the whole of s. It takes time in the length of s for
// each star, however they stand.
func matches(pattern, s string) bool {
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
