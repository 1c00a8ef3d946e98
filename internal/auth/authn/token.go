package authn

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/idp"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

var (
	errNotJWT      = errors.New("the token is not a signed JWT")
	errType        = errors.New("the token type is not an access token")
	errCritical    = errors.New("the token requires unknown extensions")
	errIssuer      = errors.New("no method accepts tokens of the issuer")
	errAudience    = errors.New("the token is for another audience")
	errExpired     = errors.New("the token has expired, or has no expiry time")
	errNotYetValid = errors.New("the token is not valid yet")
	errAlgorithm   = errors.New("the signature algorithm of the token is not allowed")
	errKey         = errors.New("the issuer does not publish the key of the token")
	errSignature   = errors.New("the signature of the token is invalid, or a registered claim has the wrong type")
	errCertBinding = errors.New("the token is bound to a key that the client did not present")
	errSubject     = errors.New("a required claim is missing or has the wrong type")
)

// tokenMethod accepts tokens of one issuer for one audience.
type tokenMethod struct {
	TokenOptions
	issuer *issuer
	// insufficientScope is the error for a token without a required scope.
	insufficientScope *scopeError
}

// jwt is a parsed token (RFC 7519). It is not verified.
type jwt struct {
	text           string
	header, claims map[string]any
}

// tokenLimits bound the JSON in a token.
var tokenLimits = jsonguard.Limits{Bytes: maxCredential, Depth: 16, Tokens: 4096}

// parseJWT parses a token in compact form (RFC 7515 section 7.1).
func parseJWT(text string) (jwt, error) {
	header, rest, _ := strings.Cut(text, ".")
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || signature == "" || strings.Contains(signature, ".") {
		return jwt{}, errNotJWT
	}
	t := jwt{text: text}
	for _, part := range []struct {
		text string
		into *map[string]any
	}{{header, &t.header}, {payload, &t.claims}} {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(part.text)
		if err != nil || !jsonguard.IsObject(raw) || jsonguard.Check(raw, tokenLimits) != nil || json.Unmarshal(raw, part.into) != nil {
			return jwt{}, errNotJWT
		}
	}
	return t, nil
}

func (s *methodSet) token(r *http.Request, text string) (identity.Principal, error) {
	if len(s.tokens) == 0 {
		return identity.Principal{}, errNoTokens
	}
	t, err := parseJWT(text)
	if err != nil {
		return identity.Principal{}, err
	}
	if err := t.checkHeader(); err != nil {
		return identity.Principal{}, err
	}
	if err := t.checkCertBinding(leafOf(r.TLS)); err != nil {
		return identity.Principal{}, err
	}
	var issuers, audiences []string
	for _, m := range s.tokens {
		issuers = append(issuers, m.Issuer)
		if t.claims["iss"] != m.Issuer {
			continue
		}
		p, err := m.check(r.Context(), t, s.now().Unix())
		if !errors.Is(err, errAudience) {
			return p, err // the token is for this method
		}
		audiences = append(audiences, m.Audience)
	}
	if len(audiences) > 0 {
		return identity.Principal{}, &claimError{errAudience, "audience", t.claims["aud"], audiences}
	}
	return identity.Principal{}, &claimError{errIssuer, "issuer", t.claims["iss"], issuers}
}

// claimError rejects a token with another issuer or audience than the methods accept.
type claimError struct {
	error
	name       string
	claimed    any // not verified
	configured []string
}

func (e *claimError) Unwrap() error { return e.error }

// logAttrs returns both values for the operator. The claim of the token is bounded, and its
// control characters are escaped.
func (e *claimError) logAttrs() []slog.Attr {
	var texts []string
	switch claimed := e.claimed.(type) {
	case string:
		texts = []string{claimed}
	case []any:
		for _, one := range claimed[:min(len(claimed), 8)] {
			text, _ := one.(string)
			texts = append(texts, text)
		}
	}
	quoted := fmt.Sprintf("%.256q", strings.Join(texts, ", "))
	configured := slices.Compact(slices.Sorted(slices.Values(e.configured)))
	return []slog.Attr{
		slog.String("token_"+e.name, quoted[1:len(quoted)-1]), slog.String("configured_"+e.name, strings.Join(configured, ", ")),
	}
}

// check returns the principal of a token of the issuer. now is in seconds.
func (m *tokenMethod) check(ctx context.Context, t jwt, now int64) (identity.Principal, error) {
	if !t.hasAudience(m.Audience) {
		return identity.Principal{}, errAudience
	}
	if err := t.checkTimes(now, int64(m.Skew.Seconds())); err != nil {
		return identity.Principal{}, err
	}
	kid, _ := t.header["kid"].(string)
	alg, _ := t.header["alg"].(string)
	if err := m.issuer.verify(ctx, idp.KeyName{ID: kid, Alg: alg}, t.text); err != nil {
		return identity.Principal{}, err
	}
	p, err := m.principal(t.claims)
	if err != nil {
		return identity.Principal{}, err
	}
	for _, scope := range m.RequiredScopes {
		if !slices.Contains(p.Scopes, scope) {
			return identity.Principal{}, m.insufficientScope
		}
	}
	return p, nil
}

// checkHeader rejects other kinds of tokens (RFC 8725 section 3.11), and tokens
// with critical extensions (RFC 7515 section 4.1.11).
func (j jwt) checkHeader() error {
	if _, critical := j.header["crit"]; critical {
		return errCritical
	}
	kind, present := j.header["typ"]
	if !present {
		return nil // RFC 7519 section 5.1 makes it optional
	}
	name, _ := kind.(string)
	name = strings.ToLower(name)
	switch strings.TrimPrefix(name, "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	return errType
}

// hasAudience reports whether the token names the audience (RFC 7519 section
// 4.1.3).
func (j jwt) hasAudience(audience string) bool {
	switch aud := j.claims["aud"].(type) {
	case string:
		return aud == audience
	case []any:
		for _, one := range aud {
			if one == audience {
				return true
			}
		}
	}
	return false
}

// checkTimes rejects a token without an expiry time, and one that has expired
// or is not valid yet (RFC 7519 section 4.1.4 to 4.1.6). Times are in seconds.
func (j jwt) checkTimes(now, skew int64) error {
	end, ok := j.claims["exp"].(float64)
	if !ok || float64(now-skew) >= end {
		return errExpired
	}
	for _, name := range []string{"nbf", "iat"} {
		claim, present := j.claims[name]
		begin, ok := claim.(float64)
		if present && (!ok || begin > float64(now+skew)) {
			return errNotYetValid
		}
	}
	return nil
}

// String returns no part of the token.
func (j jwt) String() string { return fmt.Sprintf("a token of %d bytes", len(j.text)) }

// maxID bounds the id of a principal or an agent, in bytes.
const maxID = 256

// principal returns the principal of verified claims.
func (m *tokenMethod) principal(claims map[string]any) (identity.Principal, error) {
	id, ok := claim(claims, m.ID).(string)
	if !ok || !isID(id) {
		return identity.Principal{}, errSubject
	}
	scopes, ok := m.scopesOf(claims)
	if !ok {
		return identity.Principal{}, errSubject
	}
	groups, ok := stringList(claim(claims, m.Groups))
	if !ok {
		return identity.Principal{}, errSubject
	}
	p := identity.Principal{ID: id, Kind: identity.KindToken, Issuer: m.Issuer, Scopes: m.withImplied(scopes), Groups: groups, Claims: claims}
	if m.Agent == "" {
		return p, nil
	}
	if bound := claim(claims, m.Agent); bound != nil {
		if p.Agent, ok = bound.(string); !ok || !isID(p.Agent) {
			return identity.Principal{}, errSubject
		}
	}
	return p, nil
}

// withImplied returns the scopes with the scopes that they imply, transitively.
func (m *tokenMethod) withImplied(scopes []string) []string {
	if len(m.ImpliedScopes) == 0 {
		return scopes
	}
	all, seen := scopes, make(map[string]bool, len(scopes))
	for _, scope := range scopes {
		seen[scope] = true
	}
	for i := 0; i < len(all); i++ {
		for _, implied := range m.ImpliedScopes[all[i]] {
			if !seen[implied] {
				seen[implied] = true
				all = append(all, implied)
			}
		}
	}
	return all
}

// scopesOf returns the scopes of a token: a string of words, as in RFC 9068
// section 2.2.3, or a list.
func (m *tokenMethod) scopesOf(claims map[string]any) (scopes []string, ok bool) {
	found := claims["scope"]
	if found == nil {
		found = claims["scp"]
	}
	if m.Scopes != "" {
		found = claim(claims, m.Scopes)
	}
	if text, isText := found.(string); isText {
		return append([]string{}, strings.Fields(text)...), true
	}
	return stringList(found)
}

// stringList returns a claim that is a list of strings, one string, or absent.
func stringList(claim any) (list []string, ok bool) {
	list = []string{}
	switch claim := claim.(type) {
	case nil:
		return list, true
	case string:
		return append(list, claim), true
	case []any:
		for _, item := range claim {
			text, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// claim returns the claim with the name, or the nested claim of a dotted name;
// nil for none. A claim with dots in its name, such as a URL, takes precedence.
func claim(claims map[string]any, name string) any {
	for {
		if found, ok := claims[name]; ok {
			return found
		}
		first, rest, dotted := strings.Cut(name, ".")
		inner, ok := claims[first].(map[string]any)
		if !dotted || !ok {
			return nil
		}
		claims, name = inner, rest
	}
}

// isID reports whether a text may be the id of a principal or an agent.
func isID(text string) bool {
	if text == "" || len(text) > maxID || text == identity.AnonymousAgent {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// checkCertBinding rejects a token that is bound to a key (RFC 7800), unless it
// is bound to the client certificate of the connection (RFC 8705 section 3.1).
func (j jwt) checkCertBinding(leaf *x509.Certificate) error {
	bound, present := j.claims["cnf"]
	if !present {
		return nil
	}
	cnf, _ := bound.(map[string]any)
	thumbprint, ok := cnf["x5t#S256"].(string)
	if !ok || leaf == nil || len(cnf) != 1 {
		return errCertBinding
	}
	sum := sha256.Sum256(leaf.Raw)
	if base64.RawURLEncoding.EncodeToString(sum[:]) != thumbprint {
		return errCertBinding
	}
	return nil
}
