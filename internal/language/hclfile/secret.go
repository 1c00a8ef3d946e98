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

// secretSources are the sources of the value of a secret.
var secretSources = []string{"env", "file", "command", "oauth"}

// declaredSecrets returns the names of all secret blocks, before they are decoded.
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
			d.fail("contradiction", d.f.rng(b.Body.Attributes["reveal"].NameRange), "scripts cannot read a user token", "remove it, and use the token in a header of a grant")
		}
		d.oneSource(b)
		secrets = append(secrets, s)
	}
	d.checkClients(secrets)
	d.checkRedirectURLs(secrets)
	return secrets
}

// oneSource reports a secret without a source, or with several.
func (d *decoder) oneSource(b *hclsyntax.Block) {
	var sources []hcl.Range
	for _, name := range secretSources {
		if attr := b.Body.Attributes[name]; attr != nil {
			sources = append(sources, attr.NameRange)
			if v, ok := d.eval.value(attr.Expr); ok && (hasKind(v, stringKind) && v.AsString() == "" || hasKind(v, listKind) && v.LengthInt() == 0) {
				d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q is empty", name), "write the source of the secret")
			}
		}
	}
	if client := first(b.Body, "oauth"); client != nil {
		sources = append(sources, client.TypeRange)
	}
	switch {
	case !d.hasSimilar(b.Body, rules["secret"], secretSources...):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the secret has no source", "write env = \"NAME\", file = \"/path\", command = [\"…\"] or an oauth block")
	case len(sources) > 1:
		d.fail("contradiction", d.f.rng(sources[1]), "the secret has two sources", "keep only one of env, file, command and oauth",
			diag.Note{Range: d.f.rng(sources[0]), Message: "the first one is here"})
	}
}

// checkClients reports clients with a client secret that is itself a token.
func (d *decoder) checkClients(secrets []definition.Secret) {
	for _, s := range secrets {
		if s.OAuth == nil {
			continue
		}
		tokens := func(other definition.Secret) bool { return other.Name == s.OAuth.ClientSecret && other.OAuth != nil }
		if i := slices.IndexFunc(secrets, tokens); i >= 0 {
			d.fail("contradiction", s.OAuth.SecretRange, fmt.Sprintf("the client secret is itself a token, of the secret %q", secrets[i].Name),
				"use a secret with env, file or command", diag.Note{Range: secrets[i].Range, Message: "the secret"})
		}
	}
}

// checkRedirectURLs reports two secrets with the same redirect URL: only one could listen
// there, and a code would not identify its server.
func (d *decoder) checkRedirectURLs(secrets []definition.Secret) {
	listeners := map[string]diag.Range{}
	for _, s := range secrets {
		if s.OAuth == nil || s.OAuth.RedirectURL == "" {
			continue
		}
		u, err := url.Parse(s.OAuth.RedirectURL)
		if err != nil {
			continue // the decoder has reported it
		}
		listener, advice := "port "+u.Port(), "use different ports"
		if isServerURL(u) {
			listener, advice = u.Path, "use different paths"
		}
		if first, taken := listeners[listener]; taken {
			d.fail("contradiction", s.OAuth.RedirectRange, "two secrets redirect users to "+listener, advice,
				diag.Note{Range: first, Message: "the first one is here"})
			continue
		}
		listeners[listener] = s.OAuth.RedirectRange
	}
}

// grantParams are the parameters that a token request sets itself.
var grantParams = []string{"grant_type", "client_id", "client_secret", "scope", "audience", "code", "redirect_uri", "refresh_token", "client_assertion", "client_assertion_type", "username", "password",
	"response_type", "state", "code_challenge", "code_challenge_method", "code_verifier"}

// oauth decodes an oauth block. It returns nil if b is nil.
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

// checkScope reports an invalid scope (RFC 6749 section 3.3).
func (d *decoder) checkScope(e stringItem) {
	if e.text == "" || strings.ContainsFunc(e.text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
		d.fail("bad-value", d.f.rng(e.where), "this is not a scope", "write one word for each scope, such as [\"crm.read\", \"crm.write\"]")
	}
}

// tokenURL decodes the URL of the token endpoint. It warns of a private host unless private is
// set.
func (d *decoder) tokenURL(body *hclsyntax.Body, private bool) string {
	text := d.serverURL(body, "token_url")
	if u, err := url.Parse(text); err == nil && text != "" {
		d.checkReach(stringItem{text: withPort(u.Host, u.Scheme), where: body.Attributes["token_url"].Expr.Range()}, private)
	}
	return text
}

// authorization decodes the authorization page and the redirect URL.
func (d *decoder) authorization(b *hclsyntax.Block, o *definition.OAuth) {
	asks, back := b.Body.Attributes["authorize_url"], b.Body.Attributes["redirect_url"]
	r := rules["oauth"]
	switch {
	case asks == nil && back != nil:
		d.fail("missing-argument", d.f.rng(back.NameRange), "redirect_url needs authorize_url", "add authorize_url = \"https://…\", or remove it")
		return
	case asks == nil && !d.hasSimilar(b.Body, r, "client_secret", "authorize_url"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "an oauth block needs the argument \"client_secret\"", "write client_secret = secret.NAME")
	case asks != nil && !d.hasSimilar(b.Body, r, "redirect_url"):
		d.fail("missing-argument", d.f.rng(asks.NameRange), "authorize_url needs redirect_url",
			"add redirect_url = \"http://127.0.0.1:8976/callback\", with a free port, or \"https://HOST/oauth/NAME\" for callers over HTTP; register it with the server")
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
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "a redirect to this server must use https",
			"write https://, and add a tls block or a TLS proxy; http:// is only for this machine, as in \"http://127.0.0.1:8976/callback\"")
		return
	}
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !isReturnPort(u) && !isServerURL(u) {
		d.fail("bad-value", d.f.rng(back.Expr.Range()), "the redirect URL is not on this machine or this server",
			"write \"http://127.0.0.1:8976/callback\" for users of this machine, or \"https://mcp.example.com/oauth/crm\" for callers over HTTP")
		return
	}
	o.RedirectURL, o.RedirectRange = text, d.f.rng(back.Expr.Range())
}

// isReturnPort reports whether users return to a port of this machine.
func isReturnPort(u *url.URL) bool {
	return u.Scheme == "http" && definition.IsLoopback(u.Hostname()) && u.Port() != "" && u.Path != ""
}

// pathOfReturn matches the redirect paths of the server, in one canonical form.
var pathOfReturn = regexp.MustCompile(`^/oauth(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// isServerURL reports whether users return to the server, by one host name.
func isServerURL(u *url.URL) bool {
	oneHost := definition.IsHostName(definition.HostOf(u)) && !strings.HasSuffix(u.Host, ":") && !strings.Contains(u.Host, "*")
	return u.Scheme == "https" && oneHost && pathOfReturn.MatchString(u.Path) && u.RawPath == ""
}

// isPlainServerURL reports whether users would return to the server with the scheme https.
func isPlainServerURL(u url.URL) bool {
	plain := u.Scheme == "http" && u.User == nil && u.RawQuery == "" && !definition.IsLoopback(u.Hostname())
	u.Scheme = "https"
	return plain && isServerURL(&u)
}

// checkAnonymousTokens warns of user tokens over HTTP without authentication: no caller could
// own such a token.
func (d *decoder) checkAnonymousTokens(secrets []definition.Secret, auths []*hclsyntax.Block) {
	if d.f.broken || slices.ContainsFunc(auths, func(b *hclsyntax.Block) bool { return b.Labels[0] != "anonymous" }) {
		return
	}
	for _, s := range secrets {
		if s.OAuth != nil && strings.HasPrefix(s.OAuth.RedirectURL, "https:") {
			d.warn("bad-auth", s.OAuth.RedirectRange, "no caller over HTTP can have such a token without authentication",
				"add an auth block, such as auth \"api_key\" \"people\" {}, or, for the user of this machine, redirect to a port, as in \"http://127.0.0.1:8976/callback\"")
		}
	}
}

// serverURL decodes the URL of a page of the authorization server.
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
		d.fail("bad-value", where, "this is not a server URL", form)
	case u.User != nil || u.RawQuery != "":
		d.fail("bad-value", where, "the URL contains a user or a query", "put secrets in client_secret, and other parameters in params; "+form)
	case u.Scheme == "https" || u.Scheme == "http" && definition.IsLoopback(u.Hostname()):
		return text
	default:
		d.fail("bad-value", where, "the server needs https", form+"; http:// is only for this machine")
	}
	return ""
}

// clientText decodes text that is sent verbatim and must not be empty.
func (d *decoder) clientText(body *hclsyntax.Body, name string) string {
	return d.matchingText(body, name, isFilled, fmt.Sprintf("%q is empty", name), "write the value registered with the token server")
}

// clientSecret decodes the secret that authenticates the client.
func (d *decoder) clientSecret(body *hclsyntax.Body, o *definition.OAuth) {
	attr := body.Attributes["client_secret"]
	if attr == nil {
		return
	}
	o.SecretRange = d.f.rng(attr.Expr.Range())
	if !usesSecret(attr.Expr) {
		d.fail("misplaced-secret", o.SecretRange, "the file contains the client secret",
			"declare a secret with env, file or command, and write client_secret = secret.NAME")
		return
	}
	parts, ok := d.secretText(attr.Expr)
	switch {
	case !ok:
	case len(parts) != 1 || parts[0].Secret == "":
		d.fail("misplaced-secret", o.SecretRange, "the client secret must be one secret", "write client_secret = secret.NAME")
	default:
		o.ClientSecret = parts[0].Secret
	}
}

// clientParams decodes the additional parameters, including the audience.
func (d *decoder) clientParams(body *hclsyntax.Body) map[string]string {
	params := d.stringMap(body, "params")
	for name := range params {
		if slices.Contains(grantParams, name) {
			d.fail("bad-value", d.f.rng(body.Attributes["params"].Expr.Range()), fmt.Sprintf("%q is not an additional parameter", name), "remove it: other arguments of the block set it")
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

// privateText is secretText for a value that is not shown to anyone, so it may be sensitive.
func (d *decoder) privateText(x hclsyntax.Expression) ([]grant.Part, bool) {
	d.eval.allowSensitive = true
	defer func() { d.eval.allowSensitive = false }()
	return d.secretText(x)
}

// secretText evaluates text that may contain secrets: secret.x, a string with ${secret.x}, or
// base64encode() of either.
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
		"write secret.NAME, a string with ${secret.NAME}, or base64encode() of either")
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
			detail = "declare it in mcpd.hcl"
		}
		if detail == "" {
			detail = fmt.Sprintf("declare it in mcpd.hcl: secret %q { env = \"%s\" }", name, strings.ToUpper(name))
		}
		d.fail("unknown-name", d.f.rng(where), fmt.Sprintf("there is no secret %q", name), detail)
		return nil, false
	}
	return []grant.Part{{Secret: name}}, true
}

// plainText evaluates text without secrets, for a header.
func (d *decoder) plainText(x hclsyntax.Expression) ([]grant.Part, bool) {
	v, ok := d.eval.value(x)
	if !ok {
		return nil, false
	}
	s, err := convertTo(v, cty.String)
	if err != nil || s.IsNull() {
		d.fail("wrong-type", d.f.rng(x.Range()), fmt.Sprintf("the value of a header must be a string, not %s", typeOf(v)), "put the text in quotes")
		return nil, false
	}
	text := s.AsString()
	if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		d.fail("bad-value", d.f.rng(x.Range()), "the value of a header must be one line of printable text", "remove line ends and control characters, or use base64encode(…)")
		return nil, false
	}
	return []grant.Part{{Literal: text}}, true
}

func usesSecret(x hclsyntax.Expression) bool {
	return slices.ContainsFunc(x.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "secret" })
}
