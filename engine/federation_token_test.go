package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
)

// tokenDesk gives tokens to a client that knows the secret: "token-1" and so on. It is a
// server of OAuth 2.0 (RFC 6749, section 4.4).
type tokenDesk struct{ given atomic.Int64 }

func (d *tokenDesk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	w.Header().Set("Content-Type", "application/json")
	if id != "mcpd" || secret != "client-secret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "lab" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, d.given.Add(1))
}

// TestUpstream_clientCredentials has servers of every kind demand a token that a
// token server gives, and another one later.
func TestUpstream_clientCredentials(t *testing.T) {
	t.Parallel() // it waits for upstreams to be tried again
	withSessions := lab()
	t.Cleanup(func() { // whose end is refused, too
		for session := range withSessions.Sessions() {
			_ = session.Close()
		}
	})
	of := func(*http.Request) *mcp.Server { return lab() }
	for way, behind := range map[string]http.Handler{
		"sessions":  mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return withSessions }, nil),
		"stateless": mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true}),
		"events":    mcp.NewSSEHandler(of, nil),
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			isReachedWithTokens(t, behind)
		})
	}
}

// isReachedWithTokens has a server demand a token, and then another one.
func isReachedWithTokens(t *testing.T, behind http.Handler) {
	t.Helper()
	var desk tokenDesk
	var revoked, refused atomic.Int64 // tokens up to the one, and requests
	holds := func(r *http.Request) bool {
		var n int64
		_, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-%d", &n)
		return err == nil && n > revoked.Load() && n <= desk.given.Load()
	}
	door := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !holds(r) {
			refused.Add(1)
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", fmt.Sprintf(`secret "client" {
  env = "CLIENT"
}
secret "token" {
  oauth {
    token_url     = %q
    client_id     = "mcpd"
    client_secret = secret.client
    scopes        = ["lab"]
    private_networks = true
  }
}
`, web(t, &desk))+upstreamAt(door, "header \"Authorization\" {\n    value = \"Bearer ${secret.token}\"\n  }")),
			LookupEnv: func(name string) (string, bool) { return "client-secret", name == "CLIENT" },
		},
	})
	if up := s.Status().Upstreams[0]; !up.Up {
		t.Fatalf("the server is not reached: %v", up.Err)
	}
	sum := func() string { return ended(called(t, s, tool("lab_sum", `{"a":1}`))) }
	if got := sum(); !strings.Contains(got, `{"sum":3}`) || refused.Load() != 0 || desk.given.Load() != 1 {
		t.Fatalf("the call ends with %s: %d requests were refused, and %d tokens given", got, refused.Load(), desk.given.Load())
	}
	// The server does not take it any more: that costs one call.
	revoked.Store(1)
	if got := sum(); !strings.Contains(got, "has not answered") {
		t.Fatalf("a call with a token that is taken back ends with %s", got)
	}
	// It may be gone and back, with the same tools, within one snapshot: no other one tells of it.
	for !strings.Contains(sum(), `{"sum":3}`) {
		select {
		case <-t.Context().Done():
			t.Fatal("it is not back")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if n := desk.given.Load(); n != 2 {
		t.Errorf("%d tokens were given", n)
	}
}
