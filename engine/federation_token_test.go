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

// tokenServer issues tokens to a client with the secret: "token-1" and so on (OAuth 2.0, RFC 6749,
// section 4.4).
type tokenServer struct{ given atomic.Int64 }

func (d *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	w.Header().Set("Content-Type", "application/json")
	if id != "mcpd" || secret != "client-secret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "lab" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, d.given.Add(1))
}

// Servers of every kind require a token of a token server, and later another one.
func TestUpstream_clientCredentials(t *testing.T) {
	t.Parallel() // it waits for reconnects
	withSessions := newTestUpstream()
	t.Cleanup(func() { // the close is rejected, too
		for session := range withSessions.Sessions() {
			_ = session.Close()
		}
	})
	of := func(*http.Request) *mcp.Server { return newTestUpstream() }
	for way, behind := range map[string]http.Handler{
		"sessions":  mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return withSessions }, nil),
		"stateless": mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true}),
		"events":    mcp.NewSSEHandler(of, nil),
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			checkTokenRefresh(t, behind)
		})
	}
}

// checkTokenRefresh runs a server that requires a token, and later another one.
func checkTokenRefresh(t *testing.T, behind http.Handler) {
	t.Helper()
	var desk tokenServer
	var revoked, refused atomic.Int64 // revoked tokens up to this one, and rejected requests
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
		t.Fatalf("the server is unreachable: %v", up.Err)
	}
	sum := func() string { return outcomeLine(executeCall(t, s, tool("lab_sum", `{"a":1}`))) }
	if got := sum(); !strings.Contains(got, `{"sum":3}`) || refused.Load() != 0 || desk.given.Load() != 1 {
		t.Fatalf("the call ends with %s: %d requests were rejected, and %d tokens issued", got, refused.Load(), desk.given.Load())
	}
	// The server revokes the token: that costs one call.
	revoked.Store(1)
	if got := sum(); !strings.Contains(got, "has not responded") {
		t.Fatalf("a call with a revoked token ends with %s", got)
	}
	// The server may reconnect with the same tools within one snapshot, without a new one.
	failsafe := time.After(time.Minute)
	for got := sum(); !strings.Contains(got, `{"sum":3}`); got = sum() {
		select {
		case <-failsafe:
			t.Fatalf("the server did not reconnect: a call ends with %s; %d requests were rejected, and %d tokens issued", got, refused.Load(), desk.given.Load())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if n := desk.given.Load(); n != 2 {
		t.Errorf("%d tokens were issued", n)
	}
}
