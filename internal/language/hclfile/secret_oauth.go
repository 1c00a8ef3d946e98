package hclfile

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
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
	// RedirectURL the place to which they come back: an http URL of this machine, or
	// an https one of this server, below /oauth/. Both are empty when the server asks
	// for itself.
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
	d.checkBody(b)
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
			"add redirect_url = \"http://127.0.0.1:8976/callback\", with a port that is free on this machine, or \"https://HOST/oauth/NAME\" for callers over HTTP, and register it with the server")
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
	if err == nil && isPlainFront(*u) {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "users come back to this server over https alone: what they bring would be read on its way",
			"write https:// in place of http://, and give listen a tls block, or have a proxy before mcpd speak TLS; http:// is for this machine, as in \"http://127.0.0.1:8976/callback\"")
		return
	}
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !isReturnPort(u) && !isFront(u) {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "users come back neither to this machine nor to this server",
			"for the user of this machine write it as in \"http://127.0.0.1:8976/callback\", with a port and a path; for callers over HTTP as in \"https://mcp.example.com/oauth/crm\", with the name by which they reach mcpd and a path below /oauth/")
		return
	}
	o.RedirectURL, o.redirectRange = text, d.f.rng(back.Expr.Range())
}

// isReturnPort reports whether users come back to a port of this machine.
func isReturnPort(u *url.URL) bool {
	return u.Scheme == "http" && isLoopback(u.Hostname()) && u.Port() != "" && u.Path != ""
}

// pathOfReturn is below the path at which the server takes users back, and is
// written in one way alone.
var pathOfReturn = regexp.MustCompile(`^/oauth(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// isFront reports whether users come back to the server itself, by one name.
func isFront(u *url.URL) bool {
	oneHost := isHostName(hostOf(u)) && !strings.HasSuffix(u.Host, ":") && !strings.Contains(u.Host, "*")
	return u.Scheme == "https" && oneHost && pathOfReturn.MatchString(u.Path) && u.RawPath == ""
}

// isPlainFront reports whether users would come back to the server itself, but for
// the scheme.
func isPlainFront(u url.URL) bool {
	plain := u.Scheme == "http" && u.User == nil && u.RawQuery == "" && !isLoopback(u.Hostname())
	u.Scheme = "https"
	return plain && isFront(&u)
}

// checkVisitors warns of tokens of callers over HTTP where no caller proves who
// they are: such a token is nobody's.
func (d *decoder) checkVisitors(secrets []Secret, all []*hclsyntax.Block) {
	if d.f.broken || slices.ContainsFunc(all, func(b *hclsyntax.Block) bool { return b.Type == "auth" && b.Labels[0] != "anonymous" }) {
		return
	}
	for _, s := range secrets {
		if s.OAuth != nil && strings.HasPrefix(s.OAuth.RedirectURL, "https:") {
			d.warn("bad-auth", s.OAuth.redirectRange, "no caller can have such a token, as none over HTTP proves who they are",
				"add an auth block, such as auth \"api_key\" \"people\" {}; the user of this machine comes back to a port, as in \"http://127.0.0.1:8976/callback\"")
		}
	}
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
	if attr == nil {
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
