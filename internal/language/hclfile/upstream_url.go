package hclfile

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// upstreamURL decodes where the server is reached, and how.
func (d *decoder) upstreamURL(b *hclsyntax.Block, u *Upstream) {
	u.Private, _ = d.boolean(b.Body, "private_networks", false)
	u.PlaceRange = d.f.rng(b.Body.Attributes["url"].Expr.Range())
	if text, ok := d.text(b.Body, "url"); ok {
		if problem, detail := u.reach(text, u.Private); problem != "" {
			d.fail("bad-value", u.PlaceRange, problem, detail)
		}
	}
	d.upstreamHTTP(b, u)
}

// upstreamHTTP decodes how the server is spoken to over HTTP.
func (d *decoder) upstreamHTTP(b *hclsyntax.Block, u *Upstream) {
	for _, name := range []string{"dir", "env"} {
		d.onlyWith(b, name, "command")
	}
	u.Transport, _ = d.oneOf(b.Body, "transport", UpstreamStreamable, UpstreamSSE)
	taken := named{}
	for _, inner := range blocks(b.Body, rules["upstream"]) {
		if inner.Type != "header" {
			continue
		}
		if h, ok := d.header(inner, taken); ok {
			u.Grant.Headers = append(u.Grant.Headers, h)
		}
	}
}

// reach has the upstream be at a URL, or says what is wrong with that. Whoever writes
// http:// means a host of a private network or of this machine: such a name is believed
// to lead there.
func (u *Upstream) reach(text string, private bool) (problem, detail string) {
	const form = `write it as in "https://mcp.example.com/mcp"`
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Opaque != "" || at.Scheme != "https" && at.Scheme != "http" || !isHostName(hostOf(at)) || strings.Contains(at.Host, "*"):
		return "this is not the URL of a server", form
	case !isPort(at.Port()):
		return "the URL has a port that no server has", "a port is a number from 1 to 65535"
	case at.User != nil:
		return "the URL holds a user or a password", `what is secret stands in a header block, as in header "Authorization" { value = "Bearer ${secret.NAME}" }`
	case at.Fragment != "" || strings.Contains(text, "#"):
		return "the URL has a part behind #, which no server sees", "remove that part"
	}
	addr, _ := netip.ParseAddr(at.Hostname())
	u.URL = text
	u.Grant = grant.HTTP{
		Name: "upstream." + u.Name, Hosts: []string{strings.ToLower(grant.HostOf(at))}, Methods: []string{"GET", "POST", "DELETE"},
		PrivateNetworks: private || at.Scheme == "http" || isLoopback(at.Hostname()) || addr.IsPrivate(),
	}
	return "", ""
}

// isPort reports whether a server may have the port of a URL, "" being that of its scheme.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// NewUpstream returns the upstream of a URL without a block, such as one that the command
// line names. origin is where it is named, for diagnostics.
func NewUpstream(name, address, origin string) (Upstream, error) {
	u := Upstream{
		Name: name, Prefix: name + "_", Offer: offerKinds, Pin: PinFirst, Bounds: Bounds{Timeout: DefaultUpstreamTimeout}, AskTimeout: DefaultAskTimeout,
		NameRange: diag.Range{File: origin}, Range: diag.Range{File: origin},
	}
	if !IsName(name) {
		return u, fmt.Errorf("the name of an upstream is 1 to %d letters, digits, dots, dashes and underscores", maxName)
	}
	if problem, detail := u.reach(address, false); problem != "" {
		return u, fmt.Errorf("%s; %s", problem, detail)
	}
	h := sha256.New()
	for _, field := range []string{"upstream", name, address} {
		writeField(h, field)
	}
	u.Hash = Hash(h.Sum(nil))
	u.Meaning = u.Hash
	return u, nil
}

// WithoutPrefix returns an upstream of [NewUpstream] whose tools and prompts have the names
// here that it gives them itself.
func (u Upstream) WithoutPrefix() Upstream {
	h := sha256.New()
	h.Write(u.Hash[:])
	writeField(h, "without prefix")
	u.Prefix, u.Hash = "", Hash(h.Sum(nil))
	u.Meaning = u.Hash
	return u
}

// Here reports whether the URL is of the machine that asks for it, which for a server in a
// container is the container itself.
func (u *Upstream) Here() bool { return isSelf(u.host()) }

// Unencrypted returns a header with a secret in it that is sent over plain HTTP, to a host
// that nothing says is of a private network: "" for none. A container is where nobody else is.
func (u *Upstream) Unencrypted() (header string) {
	if u.Container != nil || u.Private || !strings.HasPrefix(strings.ToLower(u.URL), "http:") || isPrivate(u.host()) {
		return ""
	}
	i := slices.IndexFunc(u.Grant.Headers, func(h grant.Header) (secret bool) {
		h.Value.EachSecret(func(string) { secret = true })
		return secret
	})
	if i < 0 {
		return ""
	}
	return u.Grant.Headers[i].Name
}

// host returns that of the URL, in lower case; "" of none.
func (u *Upstream) host() string {
	at, err := url.Parse(u.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
}

// isSelf reports whether a host is that of whoever asks for it.
func isSelf(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return isLoopback(host) || strings.HasSuffix(host, ".localhost") || addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified()
}

// privateDomains are those in which the Internet has no names: RFC 6762 and RFC 8375, what
// ICANN has set aside in 2024, and the short names of services of Kubernetes.
var privateDomains = []string{".local", ".home.arpa", ".internal", ".svc"}

// isPrivate reports whether nobody else than somebody of a private network, or of this
// machine, can have a host.
func isPrivate(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err == nil {
		addr = addr.Unmap()
		return isSelf(host) || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return isSelf(host) || !strings.Contains(host, ".") ||
		slices.ContainsFunc(privateDomains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}
