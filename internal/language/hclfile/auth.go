package hclfile

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// keysFile is the default file of API keys.
const keysFile = "keys.json"

// maxSkew bounds the tolerated difference between clocks.
const maxSkew = time.Minute

// tokenAlgorithms are the accepted signature algorithms of tokens. All are asymmetric.
var tokenAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (d *decoder) auths(all []*hclsyntax.Block, l definition.Listen) []definition.Auth {
	var auths []definition.Auth
	taken := declaredNames{}
	for _, b := range all {
		kind, name := b.Labels[0], b.Labels[1]
		d.checkName("the auth block", name, b.LabelRanges[1])
		if authRules[kind] == nil {
			d.fail("bad-value", d.f.rng(b.LabelRanges[0]), fmt.Sprintf("%q is not an authentication method", kind),
				cmp.Or(diag.DidYouMean(kind, authKinds), "write one of "+quotedList(authKinds)))
			continue
		}
		d.declareName(taken, name, b.LabelRanges[1], "there is a second auth block %q", name)
		d.check(b.Body, authRules[kind], "an auth block of kind "+kind, b.DefRange())
		auths = append(auths, d.auth(b, l))
	}
	d.checkSameResource(auths)
	return auths
}

func quotedList(words []string) string { return "\"" + strings.Join(words, "\", \"") + "\"" }

func (d *decoder) auth(b *hclsyntax.Block, l definition.Listen) definition.Auth {
	a := definition.Auth{Kind: b.Labels[0], Name: b.Labels[1], Range: d.f.rng(b.DefRange())}
	switch a.Kind {
	case "api_key":
		a.APIKeys = &definition.AuthAPIKeys{File: keysFile}
		if file := d.nonEmptyText(b.Body, "file", "write the path of a file, or remove it for \""+keysFile+"\""); file != "" {
			a.APIKeys.File = file
		}
	case "oidc":
		a.JWT = d.authTokens(b.Body)
	case "mtls":
		a.MTLS = d.authCertificates(b.Body)
		if (l.TLS == nil || l.TLS.ClientCAFile == "") && !d.f.broken {
			d.fail("contradiction", a.Range, "clients cannot present certificates", "write listen { tls { client_ca_file = \"…\" } }")
		}
	case "unix":
		a.UnixPeers = &definition.AuthUnixPeers{UIDs: d.ids(b.Body, "uids"), GIDs: d.ids(b.Body, "gids")}
		if !d.hasSimilar(b.Body, authRules["unix"], "uids", "gids") {
			d.fail("missing-argument", a.Range, "the block admits no user", "write uids = [1000], gids = [1000], or both")
		}
	}
	return a
}

func (d *decoder) authTokens(body *hclsyntax.Body) *definition.AuthJWT {
	t := &definition.AuthJWT{Issuer: d.plainURL(body, "issuer")}
	t.Audience = d.nonEmptyText(body, "audience", "write the audience of the tokens, such as \"https://mcp.example.com\"")
	t.Resource = d.plainURL(body, "resource")
	t.Algorithms = d.listOf(body, "algorithms", func(s string) bool { return slices.Contains(tokenAlgorithms, s) },
		"this algorithm is not supported for tokens", "write one of "+quotedList(tokenAlgorithms))
	const form = "write the name of a claim, such as \"sub\", or \"realm.roles\" for a nested one; or remove it"
	t.ID, t.Scopes = d.nonEmptyText(body, "id", form), d.nonEmptyText(body, "scopes", form)
	t.Groups, t.Agent = d.nonEmptyText(body, "groups", form), d.nonEmptyText(body, "agent", form)
	t.RequiredScopes = d.scopes(body, "required_scopes")
	t.ImpliedScopes = d.impliedScopes(body)
	t.Skew = d.durationWithin(body, "skew", maxSkew, maxSkew)
	return t
}

// impliedScopes decodes an object that maps a broad scope to the scopes it implies.
func (d *decoder) impliedScopes(body *hclsyntax.Body) map[string][]string {
	const name = "implied_scopes"
	v, ok := d.members(body, name, &valueType{kind: listKind, elem: &valueType{kind: stringKind}})
	if !ok {
		return nil
	}
	whole := body.Attributes[name].Expr
	exprs := d.memberExprs(whole)
	implied := make(map[string][]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		key, list := it.Element()
		broad := key.AsString()
		at, items := exprs(broad)
		d.checkScope(stringItem{broad, at.Range()})
		narrower := make([]string, 0, list.LengthInt())
		for it := list.ElementIterator(); it.Next(); {
			_, item := it.Element()
			d.checkScope(stringItem{item.AsString(), itemExpr(items, len(narrower)).Range()})
			narrower = append(narrower, item.AsString())
		}
		implied[broad] = narrower
	}
	return implied
}

// plainURL decodes the URL of a server without user, query and fragment. URLs are compared as
// text.
func (d *decoder) plainURL(body *hclsyntax.Body, name string) string {
	text, ok := d.text(body, name)
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?#\"\\ ") || !definition.IsHostName(definition.HostOf(u)) ||
		u.Scheme != "https" && (u.Scheme != "http" || !definition.IsLoopback(u.Hostname())) {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q is not an https URL of a server", name),
			"write it as in \"https://login.example.com\", without query; http:// is only for this machine")
		return ""
	}
	return text
}

func (d *decoder) authCertificates(body *hclsyntax.Body) *definition.AuthMTLS {
	c := &definition.AuthMTLS{}
	allow, ok := d.stringList(body, "allow")
	for _, e := range allow {
		if e.text == "" {
			d.fail("bad-value", d.f.rng(e.where), "the name is empty", "write a name of a certificate, such as \"spiffe://fleet/*\"")
		}
	}
	if ok && len(allow) == 0 {
		d.fail("bad-value", d.f.rng(body.Attributes["allow"].Expr.Range()), "the list admits no client", "add names, or remove it to admit every certificate of the authority")
	}
	c.Allow = textsOf(allow)
	c.Agent, _ = d.boolean(body, "agent", false)
	return c
}

// ids decodes a list of user or group ids.
func (d *decoder) ids(body *hclsyntax.Body, name string) []uint32 {
	attr := body.Attributes[name]
	if attr == nil {
		return nil
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok {
		return nil
	}
	const form = "write numbers, such as [1000]; find them with id -u NAME or getent group NAME"
	where := d.f.rng(attr.Expr.Range())
	if !hasKind(v, listKind) || v.LengthInt() == 0 {
		d.fail("wrong-type", where, fmt.Sprintf("%q must be a non-empty list of numbers", name), form)
		return nil
	}
	var ids []uint32
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		n := uint64(1<<32 - 1) // not a valid user or group
		if hasKind(item, integerKind) && item.AsBigFloat().Sign() >= 0 {
			n, _ = item.AsBigFloat().Uint64()
		}
		if n >= 1<<32-1 {
			d.fail("bad-value", where, "this is not a list of user or group ids", form)
			return nil
		}
		ids = append(ids, uint32(n))
	}
	return ids
}

// checkSameResource reports auth blocks with different resources for this server.
func (d *decoder) checkSameResource(auths []definition.Auth) {
	var first *definition.Auth
	for i := range auths {
		a := &auths[i]
		switch {
		case a.JWT == nil || a.JWT.Resource == "":
		case first == nil:
			first = a
		case first.JWT.Resource != a.JWT.Resource:
			d.fail("contradiction", a.Range, "two auth blocks name different resources", "write the same resource in both: it identifies this server",
				diag.Note{Range: first.Range, Message: "the first one is here"})
		}
	}
}

func (d *decoder) listenTLS(b *hclsyntax.Block) *definition.ListenTLS {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	const form = "write the path of a file in PEM, such as \"tls/server.pem\""
	return &definition.ListenTLS{
		CertFile: d.nonEmptyText(b.Body, "cert_file", form), KeyFile: d.nonEmptyText(b.Body, "key_file", form),
		ClientCAFile: d.nonEmptyText(b.Body, "client_ca_file", form), Range: d.f.rng(b.DefRange()),
	}
}
