package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// everySetting sets every argument of auth blocks to a value other than the
// default.
const everySetting = `
listen {
  tls {
    cert_file      = "server.pem"
    key_file       = "server.key"
    client_ca_file = "fleet.pem"
  }
}
auth "api_key" "ops" {
  file = "ops.json"
}
auth "oidc" "corp" {
  issuer          = "https://login.example.com/"
  audience        = "crm"
  resource        = "https://mcp.example.com/mcp"
  algorithms      = ["ES256"]
  id              = "email"
  scopes          = "permissions"
  groups          = "realm.roles"
  agent           = "client_id"
  required_scopes = ["mcp"]
  implied_scopes  = { admin = ["crm.write"] }
  skew            = "30s"
}
auth "mtls" "fleet" {
  allow = ["spiffe://fleet/*"]
  agent = true
}
auth "unix" "admins" {
  uids = [1000]
  gids = [27]
}
auth "anonymous" "public" {}
`

// TestAuthnOptions_allSettings: a lost setting would accept callers that the
// operator excludes.
func TestAuthnOptions_allSettings(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{oidc.New()}, Files: engine.Files{ConfigPath: "/etc/mcpd/mcpd.hcl", Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(everySetting), Mode: 0o644}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := authnOptions(s.Snapshot().Auths())
	want := authn.Options{
		Keys: []authn.KeyOptions{{File: "/etc/mcpd/ops.json"}},
		Tokens: []authn.TokenOptions{{
			Issuer: "https://login.example.com/", Audience: "crm", Resource: "https://mcp.example.com/mcp", Algorithms: []string{"ES256"},
			ID: "email", Scopes: "permissions", Groups: "realm.roles", Agent: "client_id", RequiredScopes: []string{"mcp"},
			ImpliedScopes: map[string][]string{"admin": {"crm.write"}}, Skew: 30 * time.Second,
		}},
		Certificates: []authn.CertificateOptions{{Allow: []string{"spiffe://fleet/*"}, Agent: true}},
		Peers:        []authn.PeerOptions{{UIDs: []uint32{1000}, GIDs: []uint32{27}}},
		Anonymous:    true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, method := range []any{want.Keys[0], want.Tokens[0], want.Certificates[0], want.Peers[0]} {
		v := reflect.ValueOf(method)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test sets no %s of %T", v.Type().Field(i).Name, method)
			}
		}
	}
}

// TestStatus_authNotApplied serves a program that does not check its auth
// blocks at load.
func TestStatus_authNotApplied(t *testing.T) {
	config := fstest.MapFS{"mcpd.hcl": {Mode: 0o600}}
	e, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Tools: fstest.MapFS{}, Config: config, ConfigPath: "mcpd.hcl"}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	f := New(e, Options{})
	defer func() { _ = f.Shutdown(context.Background()) }()
	handler, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	synchronized := func() string {
		metrics := httptest.NewRecorder()
		e.Metrics().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(metrics.Body.String()) {
			if value, ok := strings.CutPrefix(line, "mcpd_config_synchronized "); ok {
				return strings.TrimSpace(value)
			}
		}
		return "absent"
	}
	if got := synchronized(); got != "1" {
		t.Errorf("first metric: %s", got)
	}
	if status := f.Status(); !status.Synchronized || len(status.Problems) > 0 {
		t.Errorf("first status: %+v", status)
	}
	block := fmt.Sprintf("auth \"api_key\" \"people\" {\n  file = %q\n}\n", filepath.Join(t.TempDir(), "keys.json"))
	config["mcpd.hcl"] = &fstest.MapFile{Data: []byte(block), Mode: 0o600}
	if _, err := e.Reload(t.Context(), engine.Change{Config: true}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/mcp/capabilities", nil)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("response: %d", answer.Code)
	}
	status := f.Status()
	if status.Synchronized || len(status.Problems) != 1 || status.Healthy() {
		t.Fatalf("status %q: %+v", status.Health(), status)
	}
	if got := synchronized(); got != "0" {
		t.Errorf("metric: %s", got)
	}
	if got := status.Problems[0].String(); !strings.HasPrefix(got, `mcpd.hcl:1:1: error: auth "api_key" "people" cannot be applied: `) {
		t.Errorf("problem: %s", got)
	}
}

// TestIDPTransport_privateHosts: the key URL of a provider cannot reach private
// addresses.
func TestIDPTransport_privateHosts(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	provider := idptest.New(t, idptest.NewKey("k1", "ES256"))
	config := fmt.Sprintf("auth \"oidc\" \"corp\" {\n  issuer   = %q\n  audience = \"https://mcp.example.com\"\n}\n", provider.Issuer())
	e, err := engine.New(engine.Options{
		Name: "test", Extensions: []engine.Extension{oidc.New()}, Files: engine.Files{Tools: fstest.MapFS{}, Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o600}}}, Front: Checks{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	if _, err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := newIDPTransport(e.Snapshot, e.Logger())
	defer func() { _ = p.pool.Close() }()
	for url, want := range map[string]bool{provider.Issuer() + "/.well-known/openid-configuration": true, inside.URL + "/keys": false} {
		response, err := p.client().Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
		if got := err == nil && response.StatusCode == http.StatusOK; got != want {
			t.Errorf("%s read: %v, want %v; %v", url, got, want, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("an unconfigured host received a request")
	}
}

func TestCallGroup_cancelAll(t *testing.T) {
	var l callGroup
	enter := func() (context.Context, uint64) {
		call := lazyctx.WithCancel(t.Context())
		return call, l.add(call)
	}
	gone, number := enter()
	l.remove(number)
	living, _ := enter()
	over := errors.New("over")
	l.cancelAll(over)
	late, _ := enter()
	for _, test := range []struct {
		name string
		ctx  context.Context
		want error
	}{{"left", gone, nil}, {"living", living, over}, {"late", late, over}} {
		if got := context.Cause(test.ctx); !errors.Is(got, test.want) {
			t.Errorf("the %s call ended with %v, want %v", test.name, got, test.want)
		}
	}
}

// Routes returns the patterns of all routes.
func (f *Front) Routes() (patterns []string) {
	for _, r := range f.routes(httpguard.NewBudget(0), httpguard.NewBudget(0)) {
		patterns = append(patterns, r.pattern)
	}
	return patterns
}

// Over TLS, or by another name, the cookie of the console belongs to its host alone. Without TLS, a
// browser sends it to all ports of the machine, so its path is a secret.
func TestConsoleSessions_cookie(t *testing.T) {
	for address, secret := range map[string]bool{
		"http://127.0.0.1:8080/console/": true, "http://localhost:8080/console/": true, "http://[::1]:8080/console/": true,
		"https://127.0.0.1:8443/console/": false, "https://localhost/console/": false, "https://tools.example.com/console/": false, "http://tools.example.com/console/": false,
	} {
		w := httptest.NewRecorder()
		s := newConsoleSessions(nil, anyPages{}, authn.Middleware{})
		defer s.closeAll()
		session, err := s.begin(w, httptest.NewRequest(http.MethodPost, address, nil), identity.Principal{ID: "ada"}, "key")
		if err != nil {
			t.Fatal(err)
		}
		cookie := w.Header().Get("Set-Cookie")
		if secret {
			if !strings.HasPrefix(cookie, "mcpd-console=") || !strings.Contains(cookie, "; Path="+session.base+";") || len(session.base) < len(ConsolePath)+22 {
				t.Errorf("%s: cookie %q of a session at %s", address, cookie, session.base)
			}
		} else if !strings.HasPrefix(cookie, "__Host-mcpd-console=") || !strings.Contains(cookie, "; Path=/;") || !strings.Contains(cookie, "; Secure") || session.base+"/" != ConsolePath {
			t.Errorf("%s: cookie %q of a session at %s", address, cookie, session.base)
		}
	}
}

// A session that no request uses ends, too: it holds a credential.
func TestConsoleSessions_expiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newConsoleSessions(nil, anyPages{}, authn.Middleware{})
		if _, err := s.begin(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://127.0.0.1/console/", nil), identity.Principal{ID: "ada"}, "key"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(consoleLifetime)
		synctest.Wait()
		if len(s.byID) != 0 {
			t.Error("the session has not ended")
		}
	})
}

// A request does not use a session that has expired, even before the timer ends it. A session beyond the
// limit ends the oldest one.
func TestConsoleSessions_bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newConsoleSessions(nil, anyPages{}, authn.Middleware{})
		defer s.closeAll()
		var all []*consoleSession
		var requests []*http.Request // with the cookies of the sessions
		for i := range maxConsoleSessions + 1 {
			w := httptest.NewRecorder()
			session, err := s.begin(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/console/", nil), identity.Principal{ID: fmt.Sprint(i)}, "key")
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+session.base+"/items", nil)
			r.Header.Set("Cookie", w.Header().Get("Set-Cookie"))
			all, requests = append(all, session), append(requests, r)
			time.Sleep(time.Second) // of the fake clock: no two sessions are equally old
		}
		for i, r := range requests {
			if found := s.find(r); (found == all[i]) != (i > 0) {
				t.Errorf("session %d of %d: got %v", i+1, len(all), found)
			}
		}
		last := all[len(all)-1]
		last.began = time.Now().Add(-consoleLifetime)
		if s.isOpen(last) || s.find(requests[len(all)-1]) != nil || s.byID[last.key] != nil {
			t.Error("an expired session serves a request")
		}
	})
}

// anyPages are pages without content.
type anyPages struct{ http.Handler }

func (p anyPages) Open(Operator) (ConsolePages, error)                  { return p, nil }
func (anyPages) SignIn(http.ResponseWriter, *http.Request, int, string) {}
func (anyPages) Close()                                                 {}
