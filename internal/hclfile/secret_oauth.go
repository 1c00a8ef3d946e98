package hclfile

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// OAuth is an oauth block: how this server gets tokens for itself, by the grant
// of client credentials (RFC 6749 section 4.4), or for single users, by that of
// an authorization code (section 4.1).
type OAuth struct {
	// AuthorizeURL is where users let the server have tokens of theirs, and
	// RedirectURL the place on this machine to which they come back. Both are
	// empty when the server asks for itself.
	AuthorizeURL, RedirectURL string
	// TokenURL is an https URL, or an http one of this machine.
	TokenURL string
	ClientID string
	// ClientSecret is the name of the secret that proves the client, "" of one that
	// is proved by nothing, as it may be where users are asked.
	ClientSecret string
	Scopes       []string
	// Params are sent beside what the grant sends; the audience is one of them.
	Params map[string]string
	// InBody sends id and secret in the body of the request, and not in its
	// Authorization header.
	InBody bool
	// PrivateNetworks lets the host be at a private, loopback or link-local address.
	PrivateNetworks bool

	secretRange, redirectRange diag.Range
}

// The values of auth_style.
const (
	styleHeader = "header"
	styleBody   = "body"
)

// grantParams are what the request for a token says itself.
var grantParams = []string{"grant_type", "client_id", "client_secret", "scope", "audience", "code", "redirect_uri", "refresh_token", "client_assertion", "client_assertion_type", "username", "password",
	"response_type", "state", "code_challenge", "code_challenge_method", "code_verifier"}

// oauth decodes how tokens are got. It returns nil without a block.
func (d *decoder) oauth(b *hclsyntax.Block) *OAuth {
	if b == nil {
		return nil
	}
	d.check(b.Body, rules["oauth"], "an oauth block", b.DefRange())
	o := &OAuth{}
	o.PrivateNetworks, _ = d.boolean(b.Body, "private_networks", false)
	o.TokenURL = d.tokenURL(b.Body, o.PrivateNetworks || d.meant(b.Body, rules["oauth"], "private_networks"))
	d.authorization(b, o)
	o.ClientID = d.clientText(b.Body, "client_id")
	d.clientSecret(b.Body, o)
	scopes, _ := d.strings(b.Body, "scopes")
	for _, scope := range scopes {
		d.checkScope(scope)
	}
	o.Scopes = textsOf(scopes)
	o.Params = d.clientParams(b.Body)
	style, _ := d.oneOf(b.Body, "auth_style", styleHeader, styleBody)
	o.InBody = style == styleBody
	return o
}

// checkScope reports what is not a scope (RFC 6749 section 3.3).
func (d *decoder) checkScope(e element) {
	if e.text == "" || strings.ContainsFunc(e.text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
		d.fail("bad-value", d.f.rng(e.where), "this is not a scope", "write one word for each scope, such as [\"crm.read\", \"crm.write\"]")
	}
}

// tokenURL decodes where tokens are asked for. It warns of a host in a private
// network unless that is meant.
func (d *decoder) tokenURL(body *hclsyntax.Body, private bool) string {
	text := d.serverURL(body, "token_url")
	if u, err := url.Parse(text); err == nil && text != "" {
		d.checkReach(element{text: withPort(u.Host, u.Scheme), where: body.Attributes["token_url"].Expr.Range()}, private)
	}
	return text
}

// authorization decodes where users are asked, and come back to.
func (d *decoder) authorization(b *hclsyntax.Block, o *OAuth) {
	asks, back := b.Body.Attributes["authorize_url"], b.Body.Attributes["redirect_url"]
	r := rules["oauth"]
	switch {
	case asks == nil && back != nil:
		d.fail("missing-argument", d.f.rng(back.NameRange), "users come back, and are sent nowhere", "add authorize_url = \"https://…\", or remove it")
		return
	case asks == nil && !d.meant(b.Body, r, "client_secret", "authorize_url"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "an oauth block needs the argument \"client_secret\"", "write client_secret = secret.NAME")
	case asks != nil && !d.meant(b.Body, r, "redirect_url"):
		d.fail("missing-argument", d.f.rng(asks.NameRange), "users are sent away, and come back to nowhere",
			"add redirect_url = \"http://127.0.0.1:8976/callback\", with a port that is free on this machine, and register it with the server")
	}
	if asks == nil {
		return
	}
	o.AuthorizeURL = d.serverURL(b.Body, "authorize_url")
	text, ok := d.text(b.Body, "redirect_url")
	if !ok {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) || u.Port() == "" || u.Path == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "users come back to this machine only, by its browser",
			"write it as in \"http://127.0.0.1:8976/callback\", with a port and a path")
		return
	}
	o.RedirectURL, o.redirectRange = text, d.f.rng(back.Expr.Range())
}

// serverURL decodes the address of a page of the authorization server.
func (d *decoder) serverURL(body *hclsyntax.Body, name string) string {
	text, ok := d.text(body, name)
	if !ok {
		return ""
	}
	where := d.f.rng(body.Attributes[name].Expr.Range())
	const form = "write it as in \"https://login.example.com/oauth/…\""
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Fragment != "" || !isHostName(hostOf(u)):
		d.fail("bad-value", where, "this is not the URL of a server", form)
	case u.User != nil || u.RawQuery != "":
		d.fail("bad-value", where, "the URL of the server holds a user or a query", "what is secret stands in client_secret, what is not in params; "+form)
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return text
	default:
		d.fail("bad-value", where, "the server is asked over https", form+"; http:// reaches only this machine")
	}
	return ""
}

// hostOf returns the host of a URL, an IPv6 address in brackets.
func hostOf(u *url.URL) string {
	if strings.Contains(u.Hostname(), ":") {
		return "[" + u.Hostname() + "]"
	}
	return u.Hostname()
}

// isLoopback reports whether a host is this machine by its very name.
func isLoopback(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || addr.IsLoopback()
}

// clientText decodes text that is sent as it is, and must not be empty.
func (d *decoder) clientText(body *hclsyntax.Body, name string) string {
	text, ok := d.text(body, name)
	if ok && text == "" {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q is empty", name), "write what the token server knows this server by")
	}
	return text
}

// clientSecret decodes which secret proves the client.
func (d *decoder) clientSecret(body *hclsyntax.Body, o *OAuth) {
	attr := body.Attributes["client_secret"]
	if attr == nil || isUnread(attr.Expr) {
		return
	}
	o.secretRange = d.f.rng(attr.Expr.Range())
	if !usesSecret(attr.Expr) {
		d.fail("misplaced-secret", o.secretRange, "the secret of the client stands in the file",
			"declare a secret that comes from env, file or command, and write client_secret = secret.NAME")
		return
	}
	parts, ok := d.secretText(attr.Expr)
	switch {
	case !ok:
	case len(parts) != 1 || parts[0].Secret == "":
		d.fail("misplaced-secret", o.secretRange, "the secret of the client is more than one secret", "write client_secret = secret.NAME")
	default:
		o.ClientSecret = parts[0].Secret
	}
}

// clientParams decodes what else is sent, with the audience among it.
func (d *decoder) clientParams(body *hclsyntax.Body) map[string]string {
	params := d.textMap(body, "params")
	for name := range params {
		if slices.Contains(grantParams, name) {
			d.fail("bad-value", d.f.rng(body.Attributes["params"].Expr.Range()), fmt.Sprintf("%q is no further parameter", name), "remove it: the other arguments of the block say it")
		}
	}
	if audience := d.clientText(body, "audience"); audience != "" {
		if params == nil {
			params = map[string]string{}
		}
		params["audience"] = audience
	}
	return params
}
