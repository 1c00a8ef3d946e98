package httpguard

import (
	"fmt"
	"net/url"
	"strings"
)

// isOrigin reports whether a serialized origin (RFC 6454 section 6.2) is the
// listener's own, by a loopback name.
func (l listener) isOrigin(origin string) bool {
	scheme := "http://"
	if l.tls {
		scheme = "https://"
	}
	authority, ok := strings.CutPrefix(origin, scheme)
	if !ok {
		return false
	}
	name, port, ok := splitHost(authority)
	return ok && l.isLoopback(name) && l.ownPort(port)
}

// parseOrigin reads an origin of the configuration, and returns it as a
// browser serializes it.
func parseOrigin(s string) (string, error) {
	malformed := fmt.Errorf("origin %q: want a scheme and a host, like https://app.example.com", s)
	u, err := url.Parse(strings.ToLower(s))
	if err != nil || u.Scheme == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#") {
		return "", malformed
	}
	_, port, ok := splitHost(u.Host)
	if !ok {
		return "", malformed
	}
	if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return u.Scheme + "://" + u.Host, nil
}
