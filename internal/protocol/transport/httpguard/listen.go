package httpguard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// The bounds that [Guard] sets.
const (
	headerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// CheckListen returns why a server without authentication and TLS may not
// listen on address, "host:port" or "unix:PATH": whoever reaches it there can
// use all of it. On loopback and on a socket it may; anywhere else only if
// insecure is set.
func CheckListen(address string, insecure bool) error {
	if _, ok := SocketPath(address); ok {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: want HOST:PORT, like 127.0.0.1:8080, or unix:PATH", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost") || insecure {
		return nil
	}
	return fmt.Errorf("listen on %q: it is not a loopback address, and there is no authentication with TLS: "+
		"anyone who reaches it could call every tool; listen on 127.0.0.1, or override with --insecure-listen", address)
}

// Guard gives a server the bounds that its own fields are for: how long
// headers and idle connections may take, and how long headers may be. It also
// has the server pass "OPTIONS *" to its handler, and so to the gate, instead
// of answering by itself, and tell a listener that [Limit] has made which of its
// connections are in use.
func Guard(s *http.Server) {
	follow(s)
	s.ReadHeaderTimeout = headerTime
	s.IdleTimeout = idleTime
	s.MaxHeaderBytes = maxHeaderBytes
	s.DisableGeneralOptionsHandler = true
}
