package hclfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// secretSources are where the value of a secret may come from.
var secretSources = []string{"env", "file", "command", "oauth"}

// declaredSecrets returns the names of all secret blocks, before any is decoded.
func declaredSecrets(all []*hclsyntax.Block) []string {
	var names []string
	for _, b := range all {
		names = append(names, b.Labels[0])
	}
	return names
}

func (d *decoder) secrets(all []*hclsyntax.Block) []definition.Secret {
	var secrets []definition.Secret
	taken := declaredNames{}
	for _, b := range all {
		d.declare(taken, b)
		d.checkIdentifier("the secret", b.Labels[0], b.LabelRanges[0])
		d.checkBody(b)
		s := definition.Secret{Name: b.Labels[0], Range: d.f.rng(b.DefRange())}
		s.Env, _ = d.text(b.Body, "env")
		s.File, _ = d.text(b.Body, "file")
		command, _ := d.stringList(b.Body, "command")
		s.Command = textsOf(command)
		s.OAuth = d.oauth(first(b.Body, "oauth"))
		s.Reveal, _ = d.boolean(b.Body, "reveal", false)
		if s.Reveal && s.OAuth != nil && s.OAuth.AuthorizeURL != "" {
			d.fail("contradiction", d.f.rng(b.Body.Attributes["reveal"].NameRange), "a token of a user cannot be revealed to scripts", "remove it: the token goes into the header of a grant")
		}
		d.oneSource(b)
		secrets = append(secrets, s)
	}
	d.checkClients(secrets)
	d.checkRedirectURLs(secrets)
	return secrets
}

// oneSource reports a secret that comes from nowhere, or from two places.
func (d *decoder) oneSource(b *hclsyntax.Block) {
	var sources []hcl.Range
	for _, name := range secretSources {
		if attr := b.Body.Attributes[name]; attr != nil {
			sources = append(sources, attr.NameRange)
			if v, ok := d.eval.value(attr.Expr); ok && (hasKind(v, stringKind) && v.AsString() == "" || hasKind(v, listKind) && v.LengthInt() == 0) {
				d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q is empty", name), "say where the secret comes from")
			}
		}
	}
	if client := first(b.Body, "oauth"); client != nil {
		sources = append(sources, client.TypeRange)
	}
	switch {
	case !d.hasSimilar(b.Body, rules["secret"], secretSources...):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the secret comes from nowhere", "write env = \"NAME\", file = \"/path\", command = [\"…\"] or an oauth block")
	case len(sources) > 1:
		d.fail("contradiction", d.f.rng(sources[1]), "the secret comes from two places", "keep one of env, file, command and oauth",
			diag.Note{Range: d.f.rng(sources[0]), Message: "the first one is here"})
	}
}

// checkClients reports clients whose own secret is a token: somebody has to
// prove who asks for the first one.
func (d *decoder) checkClients(secrets []definition.Secret) {
	for _, s := range secrets {
		if s.OAuth == nil {
			continue
		}
		tokens := func(other definition.Secret) bool { return other.Name == s.OAuth.ClientSecret && other.OAuth != nil }
		if i := slices.IndexFunc(secrets, tokens); i >= 0 {
			d.fail("contradiction", s.OAuth.SecretRange, fmt.Sprintf("the secret of the client is itself a token, of the secret %q", secrets[i].Name),
				"use a secret that comes from env, file or command", diag.Note{Range: secrets[i].Range, Message: "that secret"})
		}
	}
}

// checkDoors reports two secrets whose users come back to one place: only one of
// them could listen there, and a code would not say whose server has given it.
func (d *decoder) checkRedirectURLs(secrets []definition.Secret) {
	doors := map[string]diag.Range{}
	for _, s := range secrets {
		if s.OAuth == nil || s.OAuth.RedirectURL == "" {
			continue
		}
		u, err := url.Parse(s.OAuth.RedirectURL)
		if err != nil {
			continue // who decoded it has told
		}
		door, own := "port "+u.Port(), "give each a port of its own"
		if isServerURL(u) {
			door, own = u.Path, "give each a path of its own"
		}
		if first, taken := doors[door]; taken {
			d.fail("contradiction", s.OAuth.RedirectRange, "the users of two secrets come back to "+door, own,
				diag.Note{Range: first, Message: "the first one is here"})
			continue
		}
		doors[door] = s.OAuth.RedirectRange
	}
}

// grantParams are what the request for a token says itself.
var grantParams = []string{"grant_type", "client_id", "client_secret", "scope", "audience", "code", "redirect_uri", "refresh_token", "client_assertion", "client_assertion_type", "username", "password",
	"response_type", "state", "code_challenge", "code_challenge_method", "code_verifier"}

// oauth decodes how tokens are got. It returns nil without a block.
func (d *decoder) oauth(b *hclsyntax.Block) *definition.OAuth {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	o := &definition.OAuth{}
	o.PrivateNetworks, _ = d.boolean(b.Body, "private_networks", false)
	o.TokenURL = d.tokenURL(b.Body, o.PrivateNetworks || d.hasSimilar(b.Body, rules["oauth"], "private_networks"))
	d.authorization(b, o)
	o.ClientID = d.clientText(b.Body, "client_id")
	d.clientSecret(b.Body, o)
	o.Scopes = d.scopes(b.Body, "scopes")
	o.Params = d.clientParams(b.Body)
	o.CredentialsInBody = d.enumAttr(b.Body, "auth_style", "header", "body") == "body"
	return o
}

// scopes decodes a list of scopes.
func (d *decoder) scopes(body *hclsyntax.Body, name string) []string {
	list, _ := d.stringList(body, name)
	for _, e := range list {
		d.checkScope(e)
	}
	return textsOf(list)
}

// checkScope reports what is not a scope (RFC 6749 section 3.3).
func (d *decoder) checkScope(e stringItem) {
	if e.text == "" || strings.ContainsFunc(e.text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
		d.fail("bad-value", d.f.rng(e.where), "this is not a scope", "write one word for each scope, such as [\"crm.read\", \"crm.write\"]")
	}
}

// tokenURL decodes where tokens are asked for. It warns of a host in a private
// network unless that is meant.
func (d *decoder) tokenURL(body *hclsyntax.Body, private bool) string {
	text := d.serverURL(body, "token_url")
	if u, err := url.Parse(text); err == nil && text != "" {
		d.checkReach(stringItem{text: withPort(u.Host, u.Scheme), where: body.Attributes["token_url"].Expr.Range()}, private)
	}
	return text
}

// authorization decodes where users are asked, and come back to.
func (d *decoder) authorization(b *hclsyntax.Block, o *definition.OAuth) {
	asks, back := b.Body.Attributes["authorize_url"], b.Body.Attributes["redirect_url"]
	r := rules["oauth"]
	switch {
	case asks == nil && back != nil:
		d.fail("missing-argument", d.f.rng(back.NameRange), "users come back, and are sent nowhere", "add authorize_url = \"https://…\", or remove it")
		return
	case asks == nil && !d.hasSimilar(b.Body, r, "client_secret", "authorize_url"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "an oauth block needs the argument \"client_secret\"", "write client_secret = secret.NAME")
	case asks != nil && !d.hasSimilar(b.Body, r, "redirect_url"):
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
	if err == nil && isPlainServerURL(*u) {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "users come back to this server over https alone: what they bring would be read on its way",
			"write https:// in place of http://, and give listen a tls block, or have a proxy before mcpd speak TLS; http:// is for this machine, as in \"http://127.0.0.1:8976/callback\"")
		return
	}
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !isReturnPort(u) && !isServerURL(u) {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "users come back neither to this machine nor to this server",
			"for the user of this machine write it as in \"http://127.0.0.1:8976/callback\", with a port and a path; for callers over HTTP as in \"https://mcp.example.com/oauth/crm\", with the name by which they reach mcpd and a path below /oauth/")
		return
	}
	o.RedirectURL, o.RedirectRange = text, d.f.rng(back.Expr.Range())
}

// isReturnPort reports whether users come back to a port of this machine.
func isReturnPort(u *url.URL) bool {
	return u.Scheme == "http" && definition.IsLoopback(u.Hostname()) && u.Port() != "" && u.Path != ""
}

// pathOfReturn is below the path at which the server takes users back, and is
// written in one way alone.
var pathOfReturn = regexp.MustCompile(`^/oauth(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// isFront reports whether users come back to the server itself, by one name.
func isServerURL(u *url.URL) bool {
	oneHost := definition.IsHostName(definition.HostOf(u)) && !strings.HasSuffix(u.Host, ":") && !strings.Contains(u.Host, "*")
	return u.Scheme == "https" && oneHost && pathOfReturn.MatchString(u.Path) && u.RawPath == ""
}

// isPlainFront reports whether users would come back to the server itself, but for
// the scheme.
func isPlainServerURL(u url.URL) bool {
	plain := u.Scheme == "http" && u.User == nil && u.RawQuery == "" && !definition.IsLoopback(u.Hostname())
	u.Scheme = "https"
	return plain && isServerURL(&u)
}

// checkVisitors warns of tokens of callers over HTTP where no caller proves who
// they are: such a token is nobody's.
func (d *decoder) checkAnonymousTokens(secrets []definition.Secret, auths []*hclsyntax.Block) {
	if d.f.broken || slices.ContainsFunc(auths, func(b *hclsyntax.Block) bool { return b.Labels[0] != "anonymous" }) {
		return
	}
	for _, s := range secrets {
		if s.OAuth != nil && strings.HasPrefix(s.OAuth.RedirectURL, "https:") {
			d.warn("bad-auth", s.OAuth.RedirectRange, "no caller can have such a token, as none over HTTP proves who they are",
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
	case err != nil || u.Host == "" || u.Opaque != "" || u.Fragment != "" || !definition.IsHostName(definition.HostOf(u)):
		d.fail("bad-value", where, "this is not the URL of a server", form)
	case u.User != nil || u.RawQuery != "":
		d.fail("bad-value", where, "the URL of the server holds a user or a query", "what is secret stands in client_secret, what is not in params; "+form)
	case u.Scheme == "https" || u.Scheme == "http" && definition.IsLoopback(u.Hostname()):
		return text
	default:
		d.fail("bad-value", where, "the server is asked over https", form+"; http:// reaches only this machine")
	}
	return ""
}

// clientText decodes text that is sent as it is, and must not be empty.
func (d *decoder) clientText(body *hclsyntax.Body, name string) string {
	return d.matchingText(body, name, isFilled, fmt.Sprintf("%q is empty", name), "write what the token server knows this server by")
}

// clientSecret decodes which secret proves the client.
func (d *decoder) clientSecret(body *hclsyntax.Body, o *definition.OAuth) {
	attr := body.Attributes["client_secret"]
	if attr == nil {
		return
	}
	o.SecretRange = d.f.rng(attr.Expr.Range())
	if !usesSecret(attr.Expr) {
		d.fail("misplaced-secret", o.SecretRange, "the secret of the client stands in the file",
			"declare a secret that comes from env, file or command, and write client_secret = secret.NAME")
		return
	}
	parts, ok := d.secretText(attr.Expr)
	switch {
	case !ok:
	case len(parts) != 1 || parts[0].Secret == "":
		d.fail("misplaced-secret", o.SecretRange, "the secret of the client is more than one secret", "write client_secret = secret.NAME")
	default:
		o.ClientSecret = parts[0].Secret
	}
}

// clientParams decodes what else is sent, with the audience among it.
func (d *decoder) clientParams(body *hclsyntax.Body) map[string]string {
	params := d.stringMap(body, "params")
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

// privateText is secretText for what is shown to nobody, so that it may be sensitive.
func (d *decoder) privateText(x hclsyntax.Expression) ([]grant.Part, bool) {
	d.eval.allowSensitive = true
	defer func() { d.eval.allowSensitive = false }()
	return d.secretText(x)
}

// secretText computes text that may hold secrets: secret.x, a string with
// ${secret.x} in it, or base64encode() of such.
func (d *decoder) secretText(x hclsyntax.Expression) ([]grant.Part, bool) {
	if !usesSecret(x) {
		return d.plainText(x)
	}
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return d.secretText(x.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return d.secretText(x.Wrapped)
	case *hclsyntax.TemplateExpr:
		return d.secretTemplate(x)
	case *hclsyntax.FunctionCallExpr:
		if x.Name == "base64encode" && len(x.Args) == 1 && !x.ExpandFinal {
			inner, ok := d.secretText(x.Args[0])
			return []grant.Part{{Base64: &grant.Value{Parts: inner}}}, ok
		}
	case *hclsyntax.ScopeTraversalExpr:
		if name, where, ok := secretName(x); ok {
			return d.secret(name, where)
		}
	}
	d.fail("misplaced-secret", d.f.rng(x.Range()), "a secret cannot be used in this way",
		"write secret.NAME, a string with ${secret.NAME} in it, or base64encode() of those")
	return nil, false
}

func (d *decoder) secretTemplate(x *hclsyntax.TemplateExpr) ([]grant.Part, bool) {
	var parts []grant.Part
	all := true
	for _, p := range x.Parts {
		inner, ok := d.secretText(p)
		parts, all = append(parts, inner...), all && ok
	}
	return parts, all
}

func (d *decoder) secret(name string, where hcl.Range) ([]grant.Part, bool) {
	if !slices.Contains(d.eval.scope.Secrets, name) {
		if d.eval.scope.Incomplete {
			return nil, false
		}
		detail := diag.DidYouMean(name, d.eval.scope.Secrets)
		if detail == "" && !isIdentifier(name) {
			detail = "secrets are declared in mcpd.hcl"
		}
		if detail == "" {
			detail = fmt.Sprintf("declare it in mcpd.hcl: secret %q { env = \"%s\" }", name, strings.ToUpper(name))
		}
		d.fail("unknown-name", d.f.rng(where), fmt.Sprintf("there is no secret %q", name), detail)
		return nil, false
	}
	return []grant.Part{{Secret: name}}, true
}

// plainText computes text without secrets, for a header.
func (d *decoder) plainText(x hclsyntax.Expression) ([]grant.Part, bool) {
	v, ok := d.eval.value(x)
	if !ok {
		return nil, false
	}
	s, err := convertTo(v, cty.String)
	if err != nil || s.IsNull() {
		d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("the value of a header must be a string, not %s", typeOf(v)), "write text between quotes")
		return nil, false
	}
	text := s.AsString()
	if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		d.fail("bad-value", d.f.rng(x.Range()), "the value of a header must be one line of printable text", "remove line ends and control characters; base64encode(…) makes text of anything")
		return nil, false
	}
	return []grant.Part{{Literal: text}}, true
}

func usesSecret(x hclsyntax.Expression) bool {
	return slices.ContainsFunc(x.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "secret" })
}
