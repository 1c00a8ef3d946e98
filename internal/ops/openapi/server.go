package openapi

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// endpoint is the server of an operation.
type endpoint struct {
	origin string // scheme, host and port as in a URL
	host   string // host:port, as in a grant
	base   string // path before the path of the operation, without a final slash
	// private means that the grant must allow private networks.
	private bool
}

var (
	numeric   = regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)\.?$`)
	hostName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	plainPath = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()+,;=:@/-]*$`)
	parameter = regexp.MustCompile(`\{[A-Za-z0-9._~-]+\}`)
)

// endpointOf returns the server of an operation. given is the URL of the operator, "" if the document
// decides.
func endpointOf(d *spec.Document, o *spec.Operation, given string) (endpoint, error) {
	if given != "" {
		return parseEndpoint(given, true)
	}
	servers := o.Servers
	if servers == nil {
		servers = d.Servers
	}
	if len(servers) == 0 {
		return endpoint{}, errors.New("the document names no server; give its URL with --server")
	}
	return parseEndpoint(servers[0].URL, false)
}

// parseEndpoint checks the URL of a server. Only the operator may name one on a private network.
func parseEndpoint(text string, operator bool) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2048 {
		return endpoint{}, errors.New("the URL of the server is malformed")
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	switch {
	case u.Host == "":
		return endpoint{}, errors.New("the document gives no host for its server; give its URL with --server")
	case port == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return endpoint{}, errors.New("the URL of the server must be http or https, without a user, query or fragment")
	}
	host := strings.ToLower(u.Hostname())
	address, notAddress := netip.ParseAddr(host)
	// Some resolvers read a name that ends in a number, such as 0177.0.0.1, as an address.
	if notAddress != nil && (!hostName.MatchString(host) || numeric.MatchString(host)) {
		return endpoint{}, errors.New("the name of the server is malformed")
	}
	p := endpoint{base: strings.TrimRight(u.EscapedPath(), "/")}
	if notAddress == nil {
		p.private = !address.IsGlobalUnicast() || address.IsPrivate()
	} else {
		p.private = !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost")
	}
	if p.private && !operator {
		return endpoint{}, fmt.Errorf("the document names a server on a private network, %s; if you trust it, give its URL with --server", host)
	}
	if u.Scheme == "http" && !operator {
		return endpoint{}, fmt.Errorf("the document names a server without encryption, http://%s; if you trust its network, give its URL with --server", u.Host)
	}
	if p.base != "" && (!plainPath.MatchString(p.base) || unsafePath(p.base)) {
		return endpoint{}, errors.New("the path of the server has unsupported characters")
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	p.host, p.origin = host+":"+port, u.Scheme+"://"+host
	if u.Port() != "" {
		p.origin += ":" + port
	}
	return p, nil
}

// unsafePath reports whether a path has elements that servers remove, or empty ones.
func unsafePath(path string) bool {
	for element := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if element == "." || element == ".." {
			return true
		}
	}
	return strings.Contains(path, "//")
}

// checkPath rejects paths that a grant cannot name exactly.
func checkPath(path string) error {
	rest := parameter.ReplaceAllString(path, "x")
	if !plainPath.MatchString(rest) || unsafePath(rest) || len(path) > 1000 {
		return errors.New("its path has unsupported characters")
	}
	return nil
}

// pattern returns the path of a grant.
func pattern(path string) string { return parameter.ReplaceAllString(path, "*") }
