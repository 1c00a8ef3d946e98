package hclfile

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Maximums of an http grant.
const (
	maxResponse  = 64 << 20
	maxRedirects = 10
)

func (d *decoder) http(b *hclsyntax.Block, ranges map[string]diag.Range) grant.HTTP {
	body := d.grantBody(b)
	g := grant.HTTP{Name: b.Labels[0]}
	hosts := d.hosts(body)
	g.Methods = d.methods(body)
	g.Paths = d.paths(body)
	g.MaxResponse = d.size(body, "max_response", maxResponse)
	g.Timeout = d.duration(body, "timeout", 0)
	g.Redirects = d.intAttr(body, "redirects", 0, maxRedirects)
	g.PrivateNetworks, _ = d.boolean(body, "private_networks", false)
	for i, host := range hosts {
		g.Hosts = append(g.Hosts, host.text)
		ranges[fmt.Sprintf("http.%s.hosts.%d", g.Name, i)] = d.f.rng(host.where)
		d.checkReach(host, g.PrivateNetworks || d.hasSimilar(body, rules["http"], "private_networks"))
	}
	if g.PrivateNetworks {
		ranges["http."+g.Name+".private_networks"] = d.f.rng(body.Attributes["private_networks"].Expr.Range())
		for _, host := range hosts {
			d.checkPattern(host)
		}
	}
	g.Headers = d.headers(b)
	return g
}

// hosts decodes the list of hosts with ports, in lower case.
func (d *decoder) hosts(body *hclsyntax.Body) []stringItem {
	list := d.grantList(body, "hosts", "name at least one host with its port, such as \"api.example.com:443\"")
	hosts := make([]stringItem, 0, len(list))
	for _, e := range list {
		e.text = strings.ToLower(e.text)
		if problem, detail := checkHost(e.text); problem != "" {
			d.fail("bad-grant", d.f.rng(e.where), problem, detail)
			continue
		}
		hosts = append(hosts, e)
	}
	return hosts
}

// checkHost returns what is wrong with a host of a grant.
func checkHost(host string) (problem, detail string) {
	name, port, _ := cutPort(host)
	if strings.Trim(name, "*.") == "" {
		return "a grant for every host opens the whole network", "name the hosts, or a domain such as \"*.example.com:443\""
	}
	if problem, detail = hostShape(host); problem != "" {
		return problem, detail
	}
	switch {
	case port == "*":
		return "the port of a host must be a number", fmt.Sprintf("write %q", name+":443")
	case strings.Contains(strings.TrimPrefix(name, "*."), "*"):
		return "a * must be the whole first part of a host", "write it as in \"*.example.com:443\""
	}
	return "", ""
}

// hostShape returns why a text is not host:port. The port may be *.
func hostShape(host string) (problem, detail string) {
	if scheme, rest, found := strings.Cut(host, "://"); found {
		return "a host must not have a scheme or path", fmt.Sprintf("write %q", clip(withPort(rest, scheme)))
	}
	if strings.ContainsAny(host, "/@?# ") {
		return "this is not a host", "write a name and a port, such as \"api.example.com:443\""
	}
	name, port, ok := cutPort(host)
	if !ok && strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "[") {
		return "this is not a host and a port", "write an IPv6 address in brackets, such as \"[2001:db8::1]:443\""
	}
	if !ok {
		return "the host has no port", fmt.Sprintf("write %q", clip(host)+":443")
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "*" && (err != nil || n == 0 || strconv.FormatUint(n, 10) != port) {
		return "the port of the host is not a number from 1 to 65535", "write the host and its port, such as \"api.example.com:443\""
	}
	if !definition.IsHostName(name) {
		return "this is not a valid host name", "use letters, digits, - and dots; write international names in xn-- form"
	}
	return "", ""
}

// withPort returns the host of an address without scheme, with the default port of the scheme
// if it has none.
func withPort(address, scheme string) string {
	host, _, _ := strings.Cut(address, "/")
	if _, _, ok := cutPort(host); ok {
		return host
	}
	if scheme == "http" {
		return host + ":80"
	}
	return host + ":443"
}

// cutPort splits host:port; an IPv6 address is in brackets.
func cutPort(host string) (name, port string, ok bool) {
	i := strings.LastIndexByte(host, ':')
	if i <= 0 || i == len(host)-1 || strings.HasSuffix(host, "]") {
		return host, "", false
	}
	if strings.Contains(host[:i], ":") && !strings.HasPrefix(host, "[") {
		return host, "", false
	}
	return host[:i], host[i+1:], true
}

// httpMethods are the methods that a grant may list.
var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (d *decoder) methods(body *hclsyntax.Body) []string {
	list := d.grantList(body, "methods", "name at least one method, or remove the list to grant GET and HEAD")
	for _, e := range list {
		if slices.Contains(httpMethods, e.text) {
			continue
		}
		detail := diag.DidYouMean(strings.ToUpper(e.text), httpMethods)
		if upper := strings.ToUpper(e.text); upper != e.text && isToken(e.text) {
			detail = fmt.Sprintf("write it in upper case: %q", upper)
		}
		d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not a supported method", orList(detail, "write one of", httpMethods))
	}
	return textsOf(list)
}

func (d *decoder) paths(body *hclsyntax.Body) []string {
	list := d.grantList(body, "paths", "name at least one path, such as \"/customers/*\", or remove the list to grant every path")
	for _, e := range list {
		if !strings.HasPrefix(e.text, "/") && !strings.HasPrefix(e.text, "*") || strings.ContainsAny(e.text, "?# ") {
			d.fail("bad-grant", d.f.rng(e.where), "this is not a path", "write a path that starts with /, such as \"/customers/*\"; * matches any run of characters")
		}
	}
	return textsOf(list)
}

// checkPattern reports a host pattern in a grant for private networks: the owner of the domain
// decides the addresses of its names.
func (d *decoder) checkPattern(host stringItem) {
	if strings.Contains(host.text, "*") {
		d.fail("bad-grant", d.f.rng(host.where), "with private_networks, the owner of the domain decides what a * reaches",
			"name each private host, and grant the other hosts in a separate http block")
	}
}

// checkReach warns of a host with a private address or name in a grant without private
// networks.
func (d *decoder) checkReach(host stringItem, private bool) {
	name, _, _ := cutPort(host.text)
	addr, _ := netip.ParseAddr(strings.Trim(name, "[]"))
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if !private && (local || addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()) {
		d.warn("bad-grant", d.f.rng(host.where), "this host is in a private network, which the grant excludes", "add private_networks = true to the grant")
	}
}

// headers decodes the headers that egress sets.
func (d *decoder) headers(b *hclsyntax.Block) (headers []grant.Header) {
	taken := declaredNames{}
	for _, inner := range ofType(blocks(b.Body, rules[b.Type]), "header") {
		if h, ok := d.header(inner, taken); ok {
			headers = append(headers, h)
		}
	}
	return headers
}

func (d *decoder) header(b *hclsyntax.Block, taken declaredNames) (grant.Header, bool) {
	d.checkBody(b)
	name := b.Labels[0]
	where := d.f.rng(b.LabelRanges[0])
	switch lower := strings.ToLower(name); {
	case !isToken(name):
		d.fail("bad-name", where, "this is not a valid HTTP header name", "use letters, digits and - as in \"Authorization\"")
		return grant.Header{}, false
	case slices.Contains(connectionHeaders, lower):
		d.fail("bad-name", where, fmt.Sprintf("the header %q belongs to the connection and cannot be set", name), "remove it")
		return grant.Header{}, false
	default:
		d.declareName(taken, lower, b.LabelRanges[0], "there is a second header %q", name)
	}
	attr := b.Body.Attributes["value"]
	if attr == nil {
		return grant.Header{}, false
	}
	parts, ok := d.privateText(attr.Expr)
	return grant.Header{Name: name, Value: grant.Value{Parts: parts}}, ok
}

// connectionHeaders belong to the connection or frame the message (RFC 9110 section 7.6.1), so
// files must not set them.
var connectionHeaders = []string{
	"connection", "content-length", "host", "keep-alive", "proxy-authorization", "proxy-connection",
	"te", "trailer", "transfer-encoding", "upgrade",
}
