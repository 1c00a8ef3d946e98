package httpguard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// localEndpoint is the local end of a connection.
type localEndpoint struct {
	port int        // 0 without ports, as on a Unix socket
	ip   netip.Addr // invalid if there is none
	tls  bool
}

func localEndpointOf(r *http.Request) localEndpoint {
	l := localEndpoint{tls: r.TLS != nil}
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		l.port = tcp.Port
		l.ip = tcp.AddrPort().Addr().Unmap()
	}
	return l
}

// ownPort reports whether a port, or "" for the default one, is the listener's.
func (l localEndpoint) ownPort(port string) bool {
	switch {
	case l.port == 0:
		return true
	case port != "":
		n, err := strconv.Atoi(port)
		return err == nil && n == l.port
	case l.tls:
		return l.port == 443
	}
	return l.port == 80
}

// isLoopback reports whether every resolver resolves the name to this machine.
func (l localEndpoint) isLoopback(name string) bool {
	switch name {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return l.ip.IsLoopback() && name == l.ip.String()
}

// hosts holds the configured names. The zero value is empty.
type hosts struct {
	names map[string]struct{} // on the listener's own port, or none
	exact map[string]struct{} // with their port, as in a Host header
}

// allow adds "name" or "name:port".
func (h *hosts) allow(entry string) error {
	if h.names == nil {
		h.names, h.exact = map[string]struct{}{}, map[string]struct{}{}
	}
	entry = strings.ToLower(entry)
	name, port, ok := splitHost(entry)
	switch {
	case !ok:
		return fmt.Errorf("host %q: want a name or an address, with or without a port, like mcp.internal or mcp.internal:8443", entry)
	case port == "":
		h.names[name] = struct{}{}
	case port == "80" || port == "443":
		h.exact[entry[:len(entry)-len(port)-1]] = struct{}{} // clients omit the default port
		fallthrough
	default:
		h.exact[entry] = struct{}{}
	}
	return nil
}

// matches reports whether a request may carry this Host (RFC 9110 section 7.2).
func (h hosts) matches(host string, local localEndpoint) bool {
	host = strings.ToLower(host)
	if _, ok := h.exact[host]; ok {
		return true
	}
	name, port, ok := splitHost(host)
	if !ok {
		return false
	}
	if local.isLoopback(name) {
		return local.ownPort(port)
	}
	_, ok = h.names[name]
	return ok && (port == "" || local.ownPort(port))
}

// splitHost splits "name", "name:port" and "[address]:port". It rejects other
// forms: a name is in lower-case ASCII without a final dot, a port has no
// leading zero.
func splitHost(s string) (name, port string, ok bool) {
	name, rest := s, ""
	if address, bracketed := strings.CutPrefix(s, "["); bracketed {
		if name, rest, ok = strings.Cut(address, "]"); !ok {
			return "", "", false
		}
		if ip, err := netip.ParseAddr(name); err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", "", false
		}
	} else {
		if i := strings.IndexByte(s, ':'); i >= 0 {
			name, rest = s[:i], s[i:]
		}
		if !isName(name) {
			return "", "", false
		}
	}
	if rest == "" {
		return name, "", true
	}
	port, ok = strings.CutPrefix(rest, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	return name, port, ok && err == nil && n > 0 && port[0] != '0'
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && s[0] != '.' && s[len(s)-1] != '.'
}

// isOrigin reports whether a serialized origin (RFC 6454 section 6.2) is the
// listener's own, with a loopback name.
func (l localEndpoint) isOrigin(origin string) bool {
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

// IsSameOrigin reports whether a page at the host of a POST sent it. Browsers send Origin with each
// POST, and newer ones Sec-Fetch-Site too. A proxy may have decrypted the request, so the origin may be
// https without TLS here.
func IsSameOrigin(r *http.Request) bool {
	origin, site := r.Header["Origin"], r.Header["Sec-Fetch-Site"]
	if len(origin) != 1 || len(site) > 1 || len(site) == 1 && site[0] != "same-origin" {
		return false
	}
	scheme, host, _ := strings.Cut(origin[0], "://")
	return host == r.Host && (scheme == "https" || scheme == "http" && r.TLS == nil)
}

// parseOrigin parses a configured origin, and returns it in the form of
// browsers.
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
