package authn

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/auth/peercred"
)

func contextOf(p peercred.Cred) context.Context {
	return context.WithValue(context.Background(), peerKey{}, p)
}

const (
	metadataPart   = `, resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	toldAbsent     = `Bearer realm="mcpd", scope="mcp"` + metadataPart
	toldInvalid    = `Bearer realm="mcpd", error="invalid_token", scope="mcp"` + metadataPart
	toldRepeated   = `Bearer realm="mcpd", error="invalid_request"` + metadataPart
	toldInsuffient = `Bearer realm="mcpd", error="insufficient_scope", scope="mcp"` + metadataPart
)

// cell is one way to come in, and what becomes of it. A status of 0 lets in whom
// id says.
type cell struct {
	name      string
	request   *http.Request
	id, agent string
	status    int
	told      string
	reason    error
}

func (c cell) check(t *testing.T, r *Registry) {
	t.Helper()
	p, err := r.Authenticate(c.request)
	if c.status == 0 {
		if err != nil || p.ID != c.id || p.Agent != c.agent {
			t.Errorf("it is %q bound to %q (%v), want %q bound to %q", p.ID, p.Agent, err, c.id, c.agent)
		}
		return
	}
	if err == nil {
		t.Fatalf("FALSE ACCEPT as %q", p.ID)
	}
	h := http.Header{}
	status, _ := Middleware{}.Reject(h, c.request, err)
	if diff := cmp.Diff([]any{c.status, c.told}, []any{status, h.Get("WWW-Authenticate")}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c.reason != nil && !errors.Is(err, c.reason) {
		t.Errorf("the reason is %v, want %v", err, c.reason)
	}
	for _, value := range c.request.Header["Authorization"] {
		if _, token, _ := strings.Cut(value, " "); len(token) > 8 && strings.Contains(err.Error(), token) {
			t.Errorf("the reason repeats the credential: %v", err)
		}
	}
}

func TestAuthenticate_matrix(t *testing.T) {
	s := newSite(t)
	var cells []cell
	cells = append(cells, s.keyCells()...)
	cells = append(cells, s.tokenCells()...)
	cells = append(cells, s.algorithmCells()...)
	cells = append(cells, s.claimCells()...)
	cells = append(cells, s.certificateCells()...)
	cells = append(cells, s.mixedCells()...)
	s.apply(s.options())
	for _, c := range cells {
		t.Run(c.name, func(t *testing.T) { c.check(t, s.roster) })
	}
}

func (s *site) keyCells() []cell {
	s.t.Helper()
	k, bound := s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{Agent: "bot"})
	past := s.apiKey(apikey.Record{Expires: s.clock.now().Add(-time.Second)})
	revoked := s.apiKey(apikey.Record{Revoked: s.clock.now()})
	text := k.Plaintext()
	return []cell{
		{name: "a key", request: bearing(text), id: "ci"},
		{name: "a key in a header of its own", request: request("X-API-Key", text), id: "ci"},
		{name: "a key that is bound", request: bearing(bound.Plaintext()), id: "ci", agent: "bot"},
		{name: "nothing", request: request(), status: 401, told: toldAbsent, reason: errNoCredential},
		{name: "a key that has expired", request: bearing(past.Plaintext()), status: 401, told: toldInvalid, reason: apikey.ErrExpired},
		{name: "a key that was revoked", request: bearing(revoked.Plaintext()), status: 401, told: toldInvalid, reason: apikey.ErrRevoked},
		{name: "a key that nobody made", request: bearing(apikey.New().Plaintext()), status: 401, told: toldInvalid, reason: errUnknownKey},
		{name: "a key with a typing error", request: bearing(text[:len(text)-1] + "0"), status: 401, told: toldInvalid, reason: apikey.ErrMalformed},
		{name: "an id without its secret", request: bearing("mcpd_" + k.ID + "_"), status: 401, told: toldInvalid, reason: apikey.ErrMalformed},
		{name: "a key in the URL", request: httptest.NewRequest(http.MethodGet, "/mcp?access_token="+text+"&api_key="+text, nil), status: 401, told: toldAbsent},
		{name: "two headers", request: request("Authorization", "Bearer "+text, "X-API-Key", text), status: 400, told: toldRepeated, reason: errMultipleCredentials},
		{name: "two values", request: request("Authorization", "Bearer "+text, "Authorization", "Bearer "+text), status: 400, told: toldRepeated},
		{name: "two keys", request: request("X-API-Key", text, "X-API-Key", text), status: 400, told: toldRepeated},
		{name: "two in one", request: request("Authorization", "Bearer "+text+", Bearer "+text), status: 401, told: toldInvalid, reason: errMalformed},
		{name: "another scheme", request: request("Authorization", "Basic "+text), status: 401, told: toldAbsent, reason: errScheme},
		{name: "no scheme", request: request("Authorization", text), status: 401, told: toldAbsent, reason: errScheme},
		{name: "an empty header", request: request("Authorization", ""), status: 401, told: toldAbsent},
		{name: "a scheme alone", request: request("Authorization", "Bearer "), status: 401, told: toldInvalid},
		{name: "an empty key", request: request("X-API-Key", ""), status: 401, told: toldInvalid},
		{name: "a token as a key", request: request("X-API-Key", s.token(nil)), status: 401, told: toldInvalid, reason: apikey.ErrMalformed},
		{name: "a long one", request: bearing(strings.Repeat("a", maxCredential+1)), status: 401, told: toldInvalid, reason: errMalformed},
	}
}

func (s *site) tokenCells() []cell {
	good := s.token(nil)
	stranger := idptest.NewKey("one", "RS256")
	now := s.clock.now().Unix()
	invalid := func(name string, changed map[string]any, reason error) cell {
		return cell{name: name, request: bearing(s.token(changed)), status: 401, told: toldInvalid, reason: reason}
	}
	head, tail, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(tail, ".")
	other, _, _ := strings.Cut(strings.SplitN(s.token(map[string]any{"sub": "root"}), ".", 2)[1], ".")
	return []cell{
		{name: "a token", request: bearing(good), id: "ada"},
		{name: "a token that is bound", request: bearing(s.token(map[string]any{"agent": "bot"})), id: "ada", agent: "bot"},
		{name: "a token of several audiences", request: bearing(s.token(map[string]any{"aud": []string{"x", audience}})), id: "ada"},
		{name: "a minute of skew", request: bearing(s.token(map[string]any{"exp": now - 59, "nbf": now + 60})), id: "ada"},
		{name: "a scope that implies the one that is required", request: bearing(s.token(map[string]any{"scope": "all"})), id: "ada"},
		{name: "a list of scopes", request: bearing(s.token(map[string]any{"scope": nil, "scp": []string{"mcp"}})), id: "ada"},
		invalid("expired", map[string]any{"exp": now - 60}, errExpired),
		invalid("no expiry", map[string]any{"exp": nil}, errExpired),
		invalid("an expiry in words", map[string]any{"exp": "2999"}, errExpired),
		invalid("not yet valid", map[string]any{"nbf": now + 61}, errNotYetValid),
		invalid("issued later", map[string]any{"iat": now + 61}, errNotYetValid),
		invalid("a beginning in words", map[string]any{"nbf": "0"}, errNotYetValid),
		invalid("another audience", map[string]any{"aud": "https://other.example.com"}, errAudience),
		invalid("an audience that begins alike", map[string]any{"aud": audience + "/"}, errAudience),
		invalid("no audience", map[string]any{"aud": nil}, errAudience),
		invalid("another issuer", map[string]any{"iss": "https://evil.example.com"}, errIssuer),
		invalid("an issuer that ends in a slash", map[string]any{"iss": s.provider.Issuer() + "/"}, errIssuer),
		invalid("no issuer", map[string]any{"iss": nil}, errIssuer),
		invalid("a subject that is no text", map[string]any{"sub": 1}, errSignature),
		invalid("bound to a key that nobody showed", map[string]any{"cnf": map[string]any{"jkt": "x"}}, errCertBinding),
		{name: "a stranger's key under the same id", request: bearing(idptest.Sign(stranger, nil, s.claims(nil))), status: 401, told: toldInvalid, reason: errSignature},
		{name: "an unknown key", request: bearing(idptest.Sign(stranger.WithID("two"), nil, s.claims(nil))), status: 401, told: toldInvalid, reason: errKey},
		{name: "other claims", request: bearing(head + "." + other + "." + signature), status: 401, told: toldInvalid, reason: errSignature},
		{name: "no signature", request: bearing(head + "." + payload + "."), status: 401, told: toldInvalid, reason: errNotJWT},
		{name: "four parts", request: bearing(good + ".x"), status: 401, told: toldInvalid, reason: errNotJWT},
		{name: "no token", request: bearing("hello"), status: 401, told: toldInvalid, reason: errNotJWT},
		{name: "no scope", request: bearing(s.token(map[string]any{"scope": "crm:read"})), status: 403, told: toldInsuffient},
		{name: "a scope that begins alike", request: bearing(s.token(map[string]any{"scope": "mcp2"})), status: 403, told: toldInsuffient},
	}
}

func (s *site) algorithmCells() []cell {
	sign := func(k *idptest.Key, header map[string]any) *http.Request {
		return bearing(idptest.Sign(k, header, s.claims(nil)))
	}
	var cells []cell
	for name, r := range map[string]*http.Request{
		"the public key as a secret":        sign(s.key.Confused(), nil),
		"HS256 signed by RSA":               sign(s.key.WithAlgorithm("HS256"), nil),
		"no algorithm, and a signature":     sign(s.key.WithAlgorithm("none"), nil),
		"no algorithm, in capitals":         sign(s.key.WithAlgorithm("NONE"), nil),
		"an algorithm that is not allowed":  sign(s.key.WithAlgorithm("RS512"), nil),
		"no member alg":                     sign(s.key, map[string]any{"alg": nil}),
		"an algorithm in two cases":         sign(s.key, map[string]any{"alg": "none", "ALG": "RS256"}),
		"the algorithm of another key":      sign(s.key.WithAlgorithm("ES256"), nil),
		"another padding":                   sign(s.key.WithAlgorithm("PS256"), nil),
		"an extension":                      sign(s.key, map[string]any{"crit": []string{"b64"}, "b64": false}),
		"another type":                      sign(s.key, map[string]any{"typ": "dpop+jwt"}),
		"a type that is none":               sign(s.key, map[string]any{"typ": 1}),
		"a key of its own":                  sign(idptest.NewKey("x", "ES256"), map[string]any{"jwk": idptest.NewKey("x", "ES256").JWK(), "kid": "one"}),
		"a place to find keys":              sign(idptest.NewKey("x", "RS256"), map[string]any{"jku": "http://127.0.0.1:1/", "kid": "x"}),
		"no algorithm, and no signature":    bearing(idptest.Sign(s.key.None(), nil, s.claims(nil))),
		"no algorithm, and some signature":  bearing(idptest.Sign(s.key.None(), nil, s.claims(nil)) + "AAAA"),
		"a header that is no object":        bearing(idptest.SignText(s.key, `[]`, `{}`)),
		"claims that are no object":         bearing(idptest.SignText(s.key, `{"alg":"RS256","kid":"one"}`, `"x"`)),
		"a header with a member twice":      bearing(idptest.SignText(s.key, `{"alg":"none","alg":"RS256","kid":"one"}`, `{}`)),
		"claims deeper than any":            bearing(idptest.SignText(s.key, `{"alg":"RS256"}`, strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000))),
		"an id of a key that is no text":    sign(s.key, map[string]any{"kid": []int{1}, "alg": "ES256"}),
		"the issuer in two cases, unsigned": bearing(idptest.SignText(s.key.None(), `{"alg":"none"}`, `{"ISS":"x"}`)),
	} {
		cells = append(cells, cell{name: name, request: r, status: 401, told: toldInvalid})
	}
	return append(cells,
		cell{name: "no type", request: sign(s.key, map[string]any{"typ": nil}), id: "ada"},
		cell{name: "a type in full", request: sign(s.key, map[string]any{"typ": "application/AT+JWT"}), id: "ada"},
		cell{name: "no id of a key, where there is one key", request: sign(s.key, map[string]any{"kid": nil}), id: "ada"})
}

func (s *site) claimCells() []cell {
	var cells []cell
	for name, changed := range map[string]map[string]any{
		"no subject":                 {"sub": nil},
		"an empty subject":           {"sub": ""},
		"an anonymous subject":       {"sub": "anonymous"},
		"a subject of control codes": {"sub": "a\x1b[0m"},
		"a long subject":             {"sub": strings.Repeat("a", maxID+1)},
		"scopes that are no texts":   {"scope": nil, "scp": []any{"mcp", 1}},
		"groups that are no texts":   {"groups": map[string]any{}},
		"an agent that is no text":   {"agent": true},
		"an anonymous agent":         {"agent": "anonymous"},
		"an empty agent":             {"agent": ""},
	} {
		cells = append(cells, cell{name: name, request: bearing(s.token(changed)), status: 401, told: toldInvalid, reason: errSubject})
	}
	return cells
}

func (s *site) certificateCells() []cell {
	ca := certtest.New(s.t)
	named, stranger := ca.Issue(s.t, "root", "spiffe://fleet/a").Leaf, ca.Issue(s.t, "spiffe://fleet/a", "spiffe://other/a").Leaf
	late := *named
	late.NotAfter = s.clock.now().Add(-time.Second)
	unverified := request()
	unverified.TLS = showing(request(), named).TLS
	unverified.TLS.VerifiedChains = nil
	return []cell{
		{name: "a certificate", request: showing(request(), named), id: "spiffe://fleet/a", agent: "spiffe://fleet/a"},
		{name: "a certificate of another name", request: showing(request(), stranger), status: 401, told: toldInvalid, reason: errCertificateName},
		{name: "a certificate that has expired", request: showing(request(), &late), status: 401, told: toldInvalid, reason: errCertificateTime},
		{name: "a certificate that nobody verified", request: unverified, status: 401, told: toldAbsent, reason: errNoCredential},
		{name: "a user of the socket", request: from(request(), 1000), id: "1000"},
		{name: "another user of the socket", request: from(request(), 1001), status: 401, told: toldAbsent, reason: errNoCredential},
	}
}

func (s *site) mixedCells() []cell {
	leaf := certtest.New(s.t).Issue(s.t, "x", "spiffe://fleet/a").Leaf
	k, bound, same := s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{Agent: "bot"}), s.apiKey(apikey.Record{Agent: "spiffe://fleet/a"})
	foreign := certtest.New(s.t).Issue(s.t, "x", "spiffe://other/a").Leaf
	return []cell{
		{name: "a key with a certificate", request: showing(bearing(k.Plaintext()), leaf), id: "ci", agent: "spiffe://fleet/a"},
		{name: "a key with the certificate of its agent", request: showing(bearing(same.Plaintext()), leaf), id: "ci", agent: "spiffe://fleet/a"},
		{name: "a key with the certificate of another agent", request: showing(bearing(bound.Plaintext()), leaf), status: 403, reason: errAgentConflict},
		{name: "a bad key with a good certificate", request: showing(bearing(apikey.New().Plaintext()), leaf), status: 401, told: toldInvalid},
		{name: "a bad token with a good certificate", request: showing(bearing(s.token(map[string]any{"aud": "x"})), leaf), status: 401, told: toldInvalid},
		{name: "a good key with a bad certificate", request: showing(bearing(k.Plaintext()), foreign), status: 401, told: toldInvalid},
		{name: "a bad key of a good user", request: from(bearing(apikey.New().Plaintext()), 1000), status: 401, told: toldInvalid},
		{name: "a key of a user who may not enter", request: from(bearing(k.Plaintext()), 1001), id: "ci"},
		{name: "a token on a socket", request: from(bearing(s.token(nil)), 1000), id: "ada"},
		{name: "two headers with a certificate", request: showing(request("Authorization", "Bearer "+k.Plaintext(), "X-API-Key", k.Plaintext()), leaf), status: 400, told: toldRepeated},
	}
}
