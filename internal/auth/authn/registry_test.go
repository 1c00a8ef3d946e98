package authn

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
)

func TestRegistry_beforeApply(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	defer r.Close()
	if _, err := r.Authenticate(request()); err == nil {
		t.Error("a request was accepted")
	}
}

func TestRegistry_anonymous(t *testing.T) {
	s := newSite(t)
	o := s.options()
	o.Anonymous = true
	s.apply(o)
	p, err := s.registry.Authenticate(request())
	if err != nil || p.Kind != identity.KindAnonymous {
		t.Errorf("without a credential: %v, %v", p, err)
	}
	for name, r := range map[string]*http.Request{
		"invalid key":   bearing(apikey.New().Plaintext()),
		"invalid token": bearing(s.token(map[string]any{"aud": "x"})),
		"not a token":   bearing("x"),
		"other scheme":  request("Authorization", "Basic eDp5"),
		"empty header":  request("Authorization", ""),
	} {
		if p, err := s.registry.Authenticate(r); err == nil {
			t.Errorf("%s was accepted as %v", name, p)
		}
	}
}

func TestRegistry_allowAll(t *testing.T) {
	s := newSite(t)
	s.apply(Options{AllowAll: true})
	for name, r := range map[string]*http.Request{"nothing": request(), "a header": bearing("x"), "two": request("X-API-Key", "a", "Authorization", "b")} {
		if p, err := s.registry.Authenticate(r); err != nil || p.Kind != identity.KindAnonymous {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	o := s.options()
	o.AllowAll = true
	if err := s.registry.Apply(o); err == nil {
		t.Error("AllowAll was accepted with other methods")
	}
}

// TestKeyFile_revokedKey also checks that each added or revoked key is reported
// once.
func TestKeyFile_revokedKey(t *testing.T) {
	s := newSite(t)
	k := s.apiKey(apikey.Record{})
	s.apply(s.options())
	s.want("before", k.Plaintext(), 200)
	if _, err := apikey.Revoke(s.file, k.ID, s.clock.now()); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(time.Second)
	s.want("after a second", k.Plaintext(), 401)
	added := s.apiKey(apikey.Record{})
	s.clock.pass(time.Second)
	s.want("new key", added.Plaintext(), 200)
	s.write("")
	s.clock.pass(time.Second)
	s.want("removed key", added.Plaintext(), 401)
	all := s.events
	if len(all) != 4 { // the site has its own key
		t.Fatalf("events = %+v", all)
	}
	for i, want := range []KeyEvent{{KeyRevoked, k.ID, "ci"}, {KeyAdded, added.ID, "ci"}} {
		if all[i] != want {
			t.Errorf("event = %+v, want %+v", all[i], want)
		}
	}
	if last := (KeyEvent{KeyRevoked, added.ID, "ci"}); all[2].Name != KeyRevoked || all[3] != last {
		t.Errorf("events = %+v, want %+v last", all[2:], last)
	}
}

// TestKeyFile_openToOthers uses a file that was written long ago.
func TestKeyFile_openToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: files have no modes")
	}
	s := newSite(t)
	k := s.apiKey(apikey.Record{})
	s.apply(s.options())
	for _, r := range []struct {
		mode    os.FileMode
		want    int
		problem bool
	}{{0o600, 200, false}, {0o644, 401, true}, {0o600, 200, false}} {
		if err := os.Chmod(s.file, r.mode); err != nil {
			t.Fatal(err)
		}
		s.clock.pass(time.Hour)
		if problem := s.registry.KeyFileErrors()[s.file]; (problem != nil) != r.problem {
			t.Errorf("mode %v: error %v", r.mode, problem)
		}
		s.want(r.mode.String(), k.Plaintext(), r.want)
	}
}

func TestKeyFile_invalid(t *testing.T) {
	s := newSite(t)
	k, revoked, last := s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{}), s.apiKey(apikey.Record{})
	s.apply(s.options())
	if _, err := apikey.Revoke(s.file, revoked.ID, s.clock.now()); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(time.Second)
	s.want("revoked key", revoked.Plaintext(), 401)
	if _, err := apikey.Revoke(s.file, last.ID, s.clock.now()); err != nil {
		t.Fatal(err)
	}
	valid, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		modify func()
		want   int // status for a valid key: an unreadable file may revoke any key
	}{
		"truncated line": {func() { s.write(string(valid) + "{\"id") }, 200},
		"zero bytes":     {func() { s.write("\x00\x00") }, 200},
		"missing file":   {func() { _ = os.Remove(s.file) }, 401},
		"open to others": {func() { s.write(string(valid)); _ = os.Chmod(s.file, 0o644) }, 401},
		"directory":      {func() { _ = os.Remove(s.file); _ = os.Mkdir(s.file, 0o700) }, 401},
	} {
		_ = os.Remove(s.file)
		s.write(string(valid) + "x")
		test.modify()
		s.clock.pass(time.Second)
		s.want(name+": a good key", k.Plaintext(), test.want)
		s.want(name+": a revoked key", revoked.Plaintext(), 401)
		s.apply(s.options())
		s.want(name+": a revoked key after a reload", revoked.Plaintext(), 401)
	}
	_ = os.Remove(s.file)
	s.write(string(valid) + "{")
	s.clock.pass(time.Second)
	s.want("key revoked by a valid line", last.Plaintext(), 401)
	// In all cases, two keys were revoked and reported once.
	if want := []KeyEvent{{KeyRevoked, revoked.ID, "ci"}, {KeyRevoked, last.ID, "ci"}}; !slices.Equal(s.events, want) {
		t.Errorf("events = %+v, want %+v", s.events, want)
	}
}

func (s *site) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestApply_errors(t *testing.T) {
	s := newSite(t)
	k := s.apiKey(apikey.Record{})
	s.apply(s.options())
	none := filepath.Join(t.TempDir(), "none.json")
	err := s.registry.Apply(Options{
		Keys: []KeyOptions{{File: none}},
		Tokens: []TokenOptions{
			{Issuer: "http://idp.example.com", Audience: "a"},
			{Issuer: "https://idp.example.com", Audience: "a", Algorithms: []string{"HS256"}},
			{Issuer: "https://idp.example.com"},
			{Issuer: "https://idp.example.com", Audience: "a", Skew: time.Hour},
		},
	})
	want := `apply authentication methods: read keys: open ` + none + `: no such file or directory; make one with mcpd key new NAME --file ` + none + `
tokens of "http://idp.example.com": the issuer is not an https URL without query and fragment
tokens of "https://idp.example.com": algorithm "HS256" is not supported for tokens
tokens of "https://idp.example.com": there is no audience
tokens of "https://idp.example.com": the skew is more than a minute`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.want("key of the previous methods", k.Plaintext(), 200)
}

func TestApply_retainsProviderKeys(t *testing.T) {
	s := newSite(t)
	s.tokensOnly()
	s.want("token", s.token(nil), 200)
	o := s.options()
	o.Tokens[0].RequiredScopes = []string{"crm:read"}
	s.apply(o)
	s.want("token after a reload", s.token(nil), 200)
	if n := s.provider.Requests(idptest.KeysPath); n != 1 {
		t.Errorf("%d requests to the provider", n)
	}
	s.apply(Options{Keys: o.Keys})
	s.want("token without method", s.token(nil), 401)
}

func TestServeMetadata(t *testing.T) {
	s := newSite(t)
	s.apply(s.options())
	for path, want := range map[string]int{
		MetadataPath: 200, MetadataPath + "/mcp": 200, MetadataPath + "/mcp/": 404, MetadataPath + "/other": 404, "/mcp": 404,
	} {
		w := httptest.NewRecorder()
		s.registry.ServeMetadata(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(s.registry.Metadata(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"resource": audience, "authorization_servers": []any{s.provider.Issuer()},
		"scopes_supported": []any{"mcp"}, "bearer_methods_supported": []any{"header"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.apply(Options{Anonymous: true})
	w := httptest.NewRecorder()
	s.registry.ServeMetadata(w, httptest.NewRequest(http.MethodGet, MetadataPath, nil))
	if w.Code != 404 || s.registry.Metadata() != nil {
		t.Error("metadata without token methods")
	}
}

// TestAuthError_keysOnly checks that a server that accepts only API keys says
// so, and sends nothing that makes a client start OAuth.
func TestAuthError_keysOnly(t *testing.T) {
	s := newSite(t)
	key := s.apiKey(apikey.Record{}).Plaintext()
	other := "x" // a last character that differs from the key's
	if strings.HasSuffix(key, other) {
		other = "y"
	}
	o := s.options()
	s.apply(Options{Keys: o.Keys})
	d := Middleware{Authenticator: s.registry.Authenticate, Logger: slog.New(slog.DiscardHandler)}
	const send = "this server takes API keys: send one as Authorization: Bearer KEY"
	for _, c := range []struct{ authorization, challenge, message string }{
		{"", `Bearer realm="mcpd"`, send},
		{"Basic YTpi", `Bearer realm="mcpd"`, send},
		{"Bearer eyJhbGciOiJub25lIn0.e30.", `Bearer realm="mcpd", error="invalid_token"`, "this server takes API keys, and no tokens: send a key as Authorization: Bearer KEY"},
		{"Bearer " + key[:len(key)-1] + other, `Bearer realm="mcpd", error="invalid_token"`, "the credential was not accepted"},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		_, _, _, err := d.Authenticate(r)
		h := http.Header{}
		status, message := d.Reject(h, r, err)
		if status != http.StatusUnauthorized || h.Get("WWW-Authenticate") != c.challenge || message != c.message {
			t.Errorf("%q: %d, %s, %s", c.authorization, status, h.Get("WWW-Authenticate"), message)
		}
	}
}

func TestReject_reasonOnlyInLog(t *testing.T) {
	s := newSite(t)
	k := s.apiKey(apikey.Record{Revoked: s.clock.now()})
	s.apply(s.options())
	var log strings.Builder
	d := Middleware{Authenticator: s.registry.Authenticate, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	r := bearing(k.Plaintext())
	_, _, _, err := d.Authenticate(r)
	_, message := d.Reject(http.Header{}, r, err)
	if message != "the credential was not accepted" {
		t.Errorf("message to the caller: %q", message)
	}
	nobody := httptest.NewRequest("POST", "/mcp", nil)
	_, _, _, err = d.Authenticate(nobody)
	if _, message := d.Reject(http.Header{}, nobody, err); message != "no credential was sent, and this server requires one" {
		t.Errorf("message without a credential: %q", message)
	}
	if !strings.Contains(log.String(), "the key was revoked") || strings.Contains(log.String(), k.Plaintext()) {
		t.Errorf("log: %s", log.String())
	}
}

// TestToken_impliedScopes: policies see implied scopes too, each once.
func TestToken_impliedScopes(t *testing.T) {
	s := newSite(t)
	s.apply(s.options())
	for scopes, want := range map[string][]string{
		"mcp": {"mcp"}, "mcp crm:read": {"mcp", "crm:read"}, "crm": {"crm", "all", "mcp", "crm:read"}, "crm:read all": {"crm:read", "all", "crm", "mcp"},
	} {
		p, err := s.registry.Authenticate(bearing(s.token(map[string]any{"scope": scopes})))
		if diff := cmp.Diff(want, p.Scopes); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", scopes, err, diff)
		}
	}
}
