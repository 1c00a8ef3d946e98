package authn

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
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
	metadataPart      = `, resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	challengeAbsent   = `Bearer realm="mcpd", scope="mcp"` + metadataPart
	challengeInvalid  = `Bearer realm="mcpd", error="invalid_token", scope="mcp"` + metadataPart
	challengeRepeated = `Bearer realm="mcpd", error="invalid_request"` + metadataPart
	challengeScope    = `Bearer realm="mcpd", error="insufficient_scope", scope="mcp"` + metadataPart
)

// cell is one request, and its outcome. A status of 0 means that it is accepted
// with the principal id.
type cell struct {
	name      string
	request   *http.Request
	id, agent string
	status    int
	challenge string
	reason    error
}

func (c cell) check(t *testing.T, r *Registry) {
	t.Helper()
	p, err := r.Authenticate(c.request)
	if c.status == 0 {
		if err != nil || p.ID != c.id || p.Agent != c.agent {
			t.Errorf("principal %q with agent %q (%v), want %q with agent %q", p.ID, p.Agent, err, c.id, c.agent)
		}
		return
	}
	if err == nil {
		t.Fatalf("FALSE ACCEPT as %q", p.ID)
	}
	h := http.Header{}
	status, _ := Middleware{}.Reject(h, c.request, err)
	if diff := cmp.Diff([]any{c.status, c.challenge}, []any{status, h.Get("WWW-Authenticate")}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c.reason != nil && !errors.Is(err, c.reason) {
		t.Errorf("reason = %v, want %v", err, c.reason)
	}
	for _, value := range c.request.Header["Authorization"] {
		if _, token, _ := strings.Cut(value, " "); len(token) > 8 && strings.Contains(err.Error(), token) {
			t.Errorf("the reason contains the credential: %v", err)
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
		t.Run(c.name, func(t *testing.T) { c.check(t, s.registry) })
	}
}

func (s *site) keyCells() []cell {
	s.t.Helper()
	k, bound := s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{Agent: "bot"})
	past := s.apiKey(apikey.Record{Expires: s.clock.now().Add(-time.Second)})
	revoked := s.apiKey(apikey.Record{Revoked: s.clock.now()})
	text := k.Plaintext()
	return []cell{
		{name: "key", request: bearing(text), id: "ci"},
		{name: "key in X-API-Key", request: request("X-API-Key", text), id: "ci"},
		{name: "bound key", request: bearing(bound.Plaintext()), id: "ci", agent: "bot"},
		{name: "nothing", request: request(), status: 401, challenge: challengeAbsent, reason: errNoCredential},
		{name: "expired key", request: bearing(past.Plaintext()), status: 401, challenge: challengeInvalid, reason: apikey.ErrExpired},
		{name: "revoked key", request: bearing(revoked.Plaintext()), status: 401, challenge: challengeInvalid, reason: apikey.ErrRevoked},
		{name: "unknown key", request: bearing(apikey.New().Plaintext()), status: 401, challenge: challengeInvalid, reason: errUnknownKey},
		{name: "key with typing error", request: bearing(text[:len(text)-1] + "0"), status: 401, challenge: challengeInvalid, reason: apikey.ErrMalformed},
		{name: "id without secret", request: bearing("mcpd_" + k.ID + "_"), status: 401, challenge: challengeInvalid, reason: apikey.ErrMalformed},
		{name: "key in the URL", request: httptest.NewRequest(http.MethodGet, "/mcp?access_token="+text+"&api_key="+text, nil), status: 401, challenge: challengeAbsent},
		{name: "two headers", request: request("Authorization", "Bearer "+text, "X-API-Key", text), status: 400, challenge: challengeRepeated, reason: errMultipleCredentials},
		{name: "two values", request: request("Authorization", "Bearer "+text, "Authorization", "Bearer "+text), status: 400, challenge: challengeRepeated},
		{name: "two keys", request: request("X-API-Key", text, "X-API-Key", text), status: 400, challenge: challengeRepeated},
		{name: "two credentials in one value", request: request("Authorization", "Bearer "+text+", Bearer "+text), status: 401, challenge: challengeInvalid, reason: errMalformed},
		{name: "other scheme", request: request("Authorization", "Basic "+text), status: 401, challenge: challengeAbsent, reason: errScheme},
		{name: "no scheme", request: request("Authorization", text), status: 401, challenge: challengeAbsent, reason: errScheme},
		{name: "empty header", request: request("Authorization", ""), status: 401, challenge: challengeAbsent},
		{name: "scheme only", request: request("Authorization", "Bearer "), status: 401, challenge: challengeInvalid},
		{name: "empty key", request: request("X-API-Key", ""), status: 401, challenge: challengeInvalid},
		{name: "token as key", request: request("X-API-Key", s.token(nil)), status: 401, challenge: challengeInvalid, reason: apikey.ErrMalformed},
		{name: "too long", request: bearing(strings.Repeat("a", maxCredential+1)), status: 401, challenge: challengeInvalid, reason: errMalformed},
	}
}

func (s *site) tokenCells() []cell {
	valid := s.token(nil)
	stranger := idptest.NewKey("one", "RS256")
	now := s.clock.now().Unix()
	invalid := func(name string, changed map[string]any, reason error) cell {
		return cell{name: name, request: bearing(s.token(changed)), status: 401, challenge: challengeInvalid, reason: reason}
	}
	head, tail, _ := strings.Cut(valid, ".")
	payload, signature, _ := strings.Cut(tail, ".")
	other, _, _ := strings.Cut(strings.SplitN(s.token(map[string]any{"sub": "root"}), ".", 2)[1], ".")
	return []cell{
		{name: "token", request: bearing(valid), id: "ada"},
		{name: "bound token", request: bearing(s.token(map[string]any{"agent": "bot"})), id: "ada", agent: "bot"},
		{name: "token of several audiences", request: bearing(s.token(map[string]any{"aud": []string{"x", audience}})), id: "ada"},
		{name: "one minute of skew", request: bearing(s.token(map[string]any{"exp": now - 59, "nbf": now + 60})), id: "ada"},
		{name: "implied scope", request: bearing(s.token(map[string]any{"scope": "all"})), id: "ada"},
		{name: "scopes as list", request: bearing(s.token(map[string]any{"scope": nil, "scp": []string{"mcp"}})), id: "ada"},
		invalid("expired", map[string]any{"exp": now - 60}, errExpired),
		invalid("no expiry", map[string]any{"exp": nil}, errExpired),
		invalid("expiry as string", map[string]any{"exp": "2999"}, errExpired),
		invalid("not yet valid", map[string]any{"nbf": now + 61}, errNotYetValid),
		invalid("issued in the future", map[string]any{"iat": now + 61}, errNotYetValid),
		invalid("nbf as string", map[string]any{"nbf": "0"}, errNotYetValid),
		invalid("other audience", map[string]any{"aud": "https://other.example.com"}, errAudience),
		invalid("audience with same prefix", map[string]any{"aud": audience + "/"}, errAudience),
		invalid("no audience", map[string]any{"aud": nil}, errAudience),
		invalid("other issuer", map[string]any{"iss": "https://evil.example.com"}, errIssuer),
		invalid("issuer with trailing slash", map[string]any{"iss": s.provider.Issuer() + "/"}, errIssuer),
		invalid("no issuer", map[string]any{"iss": nil}, errIssuer),
		invalid("subject not a string", map[string]any{"sub": 1}, errSignature),
		invalid("bound to a missing key", map[string]any{"cnf": map[string]any{"jkt": "x"}}, errCertBinding),
		{name: "other key with same id", request: bearing(idptest.Sign(stranger, nil, s.claims(nil))), status: 401, challenge: challengeInvalid, reason: errSignature},
		{name: "token of unknown key", request: bearing(idptest.Sign(stranger.WithID("two"), nil, s.claims(nil))), status: 401, challenge: challengeInvalid, reason: errKey},
		{name: "modified claims", request: bearing(head + "." + other + "." + signature), status: 401, challenge: challengeInvalid, reason: errSignature},
		{name: "no signature", request: bearing(head + "." + payload + "."), status: 401, challenge: challengeInvalid, reason: errNotJWT},
		{name: "four parts", request: bearing(valid + ".x"), status: 401, challenge: challengeInvalid, reason: errNotJWT},
		{name: "not a token", request: bearing("hello"), status: 401, challenge: challengeInvalid, reason: errNotJWT},
		{name: "no scope", request: bearing(s.token(map[string]any{"scope": "crm:read"})), status: 403, challenge: challengeScope},
		{name: "scope with same prefix", request: bearing(s.token(map[string]any{"scope": "mcp2"})), status: 403, challenge: challengeScope},
	}
}

func TestReject_logsClaims(t *testing.T) {
	s := newSite(t)
	s.apply(s.options())
	for name, c := range map[string]struct {
		changed map[string]any
		want    string
	}{
		"issuer":    {map[string]any{"iss": "https://evil.example.com"}, "token_issuer=https://evil.example.com configured_issuer=" + s.provider.Issuer()},
		"no issuer": {map[string]any{"iss": nil}, `token_issuer="" configured_issuer=` + s.provider.Issuer()},
		"control":   {map[string]any{"iss": "a\nb"}, `token_issuer=a\nb configured_issuer=`},
		"long":      {map[string]any{"iss": strings.Repeat("a", 1000)}, "token_issuer=" + strings.Repeat("a", 256) + " configured_issuer="},
		"audience":  {map[string]any{"aud": []any{"https://other.example.com", 1}}, `token_audience="https://other.example.com, " configured_audience=` + audience},
		"expired":   {map[string]any{"exp": 1}, `has no expiry time" ip=`},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			r := bearing(s.token(c.changed))
			_, err := s.registry.Authenticate(r)
			Middleware{Logger: slog.New(slog.NewTextHandler(&log, nil))}.Reject(http.Header{}, r, err)
			line := regexp.MustCompile(`request_id=\S+ `).ReplaceAllString(log.String(), "")
			if !strings.Contains(line, c.want) {
				t.Errorf("%s\nlacks %s", line, c.want)
			}
		})
	}
}

func (s *site) algorithmCells() []cell {
	sign := func(k *idptest.Key, header map[string]any) *http.Request {
		return bearing(idptest.Sign(k, header, s.claims(nil)))
	}
	var cells []cell
	for name, r := range map[string]*http.Request{
		"public key as HMAC secret":    sign(s.key.Confused(), nil),
		"HS256 signed by RSA":          sign(s.key.WithAlgorithm("HS256"), nil),
		"alg none with signature":      sign(s.key.WithAlgorithm("none"), nil),
		"alg NONE":                     sign(s.key.WithAlgorithm("NONE"), nil),
		"algorithm not allowed":        sign(s.key.WithAlgorithm("RS512"), nil),
		"no alg":                       sign(s.key, map[string]any{"alg": nil}),
		"alg and ALG":                  sign(s.key, map[string]any{"alg": "none", "ALG": "RS256"}),
		"algorithm of another key":     sign(s.key.WithAlgorithm("ES256"), nil),
		"other padding":                sign(s.key.WithAlgorithm("PS256"), nil),
		"critical extension":           sign(s.key, map[string]any{"crit": []string{"b64"}, "b64": false}),
		"other type":                   sign(s.key, map[string]any{"typ": "dpop+jwt"}),
		"type not a string":            sign(s.key, map[string]any{"typ": 1}),
		"embedded key":                 sign(idptest.NewKey("x", "ES256"), map[string]any{"jwk": idptest.NewKey("x", "ES256").JWK(), "kid": "one"}),
		"jku header":                   sign(idptest.NewKey("x", "RS256"), map[string]any{"jku": "http://127.0.0.1:1/", "kid": "x"}),
		"alg none without signature":   bearing(idptest.Sign(s.key.None(), nil, s.claims(nil))),
		"alg none with some signature": bearing(idptest.Sign(s.key.None(), nil, s.claims(nil)) + "AAAA"),
		"header not an object":         bearing(idptest.SignText(s.key, `[]`, `{}`)),
		"claims not an object":         bearing(idptest.SignText(s.key, `{"alg":"RS256","kid":"one"}`, `"x"`)),
		"duplicate header member":      bearing(idptest.SignText(s.key, `{"alg":"none","alg":"RS256","kid":"one"}`, `{}`)),
		"claims too deep":              bearing(idptest.SignText(s.key, `{"alg":"RS256"}`, strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000))),
		"key id not a string":          sign(s.key, map[string]any{"kid": []int{1}, "alg": "ES256"}),
		"iss and ISS, unsigned":        bearing(idptest.SignText(s.key.None(), `{"alg":"none"}`, `{"ISS":"x"}`)),
	} {
		cells = append(cells, cell{name: name, request: r, status: 401, challenge: challengeInvalid})
	}
	return append(cells,
		cell{name: "no type", request: sign(s.key, map[string]any{"typ": nil}), id: "ada"},
		cell{name: "full media type", request: sign(s.key, map[string]any{"typ": "application/AT+JWT"}), id: "ada"},
		cell{name: "no key id with one key", request: sign(s.key, map[string]any{"kid": nil}), id: "ada"})
}

func (s *site) claimCells() []cell {
	var cells []cell
	for name, changed := range map[string]map[string]any{
		"no subject":                    {"sub": nil},
		"empty subject":                 {"sub": ""},
		"anonymous subject":             {"sub": "anonymous"},
		"control characters in subject": {"sub": "a\x1b[0m"},
		"long subject":                  {"sub": strings.Repeat("a", maxID+1)},
		"scopes not strings":            {"scope": nil, "scp": []any{"mcp", 1}},
		"groups not strings":            {"groups": map[string]any{}},
		"agent not a string":            {"agent": true},
		"anonymous agent":               {"agent": "anonymous"},
		"empty agent":                   {"agent": ""},
	} {
		cells = append(cells, cell{name: name, request: bearing(s.token(changed)), status: 401, challenge: challengeInvalid, reason: errSubject})
	}
	return cells
}

func (s *site) certificateCells() []cell {
	ca := certtest.New(s.t)
	named, other := ca.Issue(s.t, "root", "spiffe://fleet/a").Leaf, ca.Issue(s.t, "spiffe://fleet/a", "spiffe://other/a").Leaf
	late := *named
	late.NotAfter = s.clock.now().Add(-time.Second)
	unverified := request()
	unverified.TLS = withCertificate(request(), named).TLS
	unverified.TLS.VerifiedChains = nil
	return []cell{
		{name: "certificate", request: withCertificate(request(), named), id: "spiffe://fleet/a", agent: "spiffe://fleet/a"},
		{name: "certificate with other name", request: withCertificate(request(), other), status: 401, challenge: challengeInvalid, reason: errCertificateName},
		{name: "expired certificate", request: withCertificate(request(), &late), status: 401, challenge: challengeInvalid, reason: errCertificateTime},
		{name: "unverified certificate", request: unverified, status: 401, challenge: challengeAbsent, reason: errNoCredential},
		{name: "socket user", request: fromUID(request(), 1000), id: "1000"},
		{name: "other socket user", request: fromUID(request(), 1001), status: 401, challenge: challengeAbsent, reason: errNoCredential},
	}
}

func (s *site) mixedCells() []cell {
	leaf := certtest.New(s.t).Issue(s.t, "x", "spiffe://fleet/a").Leaf
	k, bound, same := s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{Agent: "bot"}), s.apiKey(apikey.Record{Agent: "spiffe://fleet/a"})
	foreign := certtest.New(s.t).Issue(s.t, "x", "spiffe://other/a").Leaf
	return []cell{
		{name: "key with certificate", request: withCertificate(bearing(k.Plaintext()), leaf), id: "ci", agent: "spiffe://fleet/a"},
		{name: "key with certificate of its agent", request: withCertificate(bearing(same.Plaintext()), leaf), id: "ci", agent: "spiffe://fleet/a"},
		{name: "key with certificate of another agent", request: withCertificate(bearing(bound.Plaintext()), leaf), status: 403, reason: errAgentConflict},
		{name: "invalid key with valid certificate", request: withCertificate(bearing(apikey.New().Plaintext()), leaf), status: 401, challenge: challengeInvalid},
		{name: "invalid token with valid certificate", request: withCertificate(bearing(s.token(map[string]any{"aud": "x"})), leaf), status: 401, challenge: challengeInvalid},
		{name: "valid key with invalid certificate", request: withCertificate(bearing(k.Plaintext()), foreign), status: 401, challenge: challengeInvalid},
		{name: "invalid key of accepted user", request: fromUID(bearing(apikey.New().Plaintext()), 1000), status: 401, challenge: challengeInvalid},
		{name: "key of other user", request: fromUID(bearing(k.Plaintext()), 1001), id: "ci"},
		{name: "token on a socket", request: fromUID(bearing(s.token(nil)), 1000), id: "ada"},
		{name: "two headers with certificate", request: withCertificate(request("Authorization", "Bearer "+k.Plaintext(), "X-API-Key", k.Plaintext()), leaf), status: 400, challenge: challengeRepeated},
	}
}
