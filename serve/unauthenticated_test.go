package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// peersSupported is true if this system authenticates socket peers.
const peersSupported = runtime.GOOS == "linux"

// usersOf returns the auth block for a local user; empty on other systems.
func usersOf(uid int) string {
	if !peersSupported {
		return ""
	}
	return fmt.Sprintf("auth \"unix\" \"users\" {\n  uids = [%d]\n}\n", uid)
}

// entrance is a way into the server, with ada's credential and the clients
// to reject.
type entrance struct {
	site
	ada     http.Header
	clients []badClient
}

// badClient is a client without valid authentication.
type badClient struct {
	name string
	site
	header http.Header
	// status is the status of all its requests; 0 without a connection.
	status int
}

// guardedBlocks are auth blocks of each kind except providers. revoked is a
// revoked key, and by has the client certificates.
func guardedBlocks(t *testing.T) (blocks string, revoked string, by encryption) {
	t.Helper()
	revoked, path := revokedKey(t)
	by = newEncryption(t)
	return usersOf(os.Getuid()+1) + by.block() + fmt.Sprintf("auth \"mtls\" \"fleet\" {\n  allow = [\"ada.*\"]\n}\nauth \"api_key\" \"ops\" {\n  file = %q\n}\n", path), revoked, by
}

// badClients are clients with invalid credentials.
func (m *matrix) badClients(at site, revoked string) []badClient {
	of := func(key *idptest.Key) http.Header { return issuer{m.corp.Provider, key}.token(nil) }
	ada, key := m.corp.token(nil), http.Header{"X-Api-Key": {revoked}}
	return []badClient{
		{"nothing", at, nil, 401},
		{"claims only", at, http.Header{"X-Agent-Id": {"ada"}, "X-Agent-Meta-Scopes": {"admin"}, "X-Forwarded-User": {"ada"}}, 401},
		{"password", at, http.Header{"Authorization": {"Basic YWRhOmFkYQ=="}}, 401},
		{"unknown key", at, http.Header{"X-Api-Key": {unknownKey()}}, 401},
		{"revoked key", at, key, 401},
		{"expired token", at, m.corp.token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401},
		{"token for another audience", at, m.corp.token(map[string]any{"aud": "https://other.example.com"}), 401},
		{"token of an unknown issuer", at, m.corp.token(map[string]any{"iss": "https://evil.example.com"}), 401},
		{"token of another issuer", at, issuer{m.other.Provider, m.corp.key}.token(nil), 401},
		{"token with a foreign key", at, of(idptest.NewKey("k1", "ES256")), 401},
		{"token with an unknown key", at, of(idptest.NewKey("k9", "ES256")), 401},
		{"unsigned token", at, of(m.corp.key.None()), 401},
		{"token with the public key as secret", at, of(m.corp.key.Confused()), 401},
		{"token and key", at, joined(ada, key), 400},
		{"two tokens", at, http.Header{"Authorization": {ada.Get("Authorization"), ada.Get("Authorization")}}, 400},
	}
}

// badCertClients are clients with invalid certificates.
func (m *matrix) badCertClients(at site, by encryption) []badClient {
	expired := m.corp.token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
	ada := m.corp.token(nil).Get("Authorization")
	return []badClient{
		{"no certificate", by.site(m.t, at), nil, 401},
		{"certificate with another name", by.site(m.t, at, by.authority.Issue(m.t, "bob.example")), nil, 401},
		{"certificate of another authority", by.site(m.t, at, certtest.New(m.t).Issue(m.t, "ada.example")), nil, 0},
		{"expired certificate", by.site(m.t, at, by.authority.IssueExpired(m.t, "ada.example")), nil, 0},
		{"valid certificate with expired token", at, expired, 401},
		{"valid certificate with two tokens", at, http.Header{"Authorization": {ada, ada}}, 400},
		{"valid token with rejected certificate", by.site(m.t, at, by.authority.Issue(m.t, "bob.example")), m.corp.token(nil), 401},
	}
}

// entrances returns all entrances: with tokens and keys, and with certificates.
func (m *matrix) entrances(revoked string, by encryption) (all []entrance) {
	m.t.Helper()
	for _, at := range m.sites() {
		all = append(all, entrance{at, m.corp.token(nil), m.badClients(at, revoked)})
	}
	at := m.encrypted(by)
	return append(all, entrance{at, nil, m.badCertClients(at, by)})
}

// try sends a request of a rejected client, and returns an error of the response.
func (m *matrix) try(s badClient, method, path, body string, header http.Header) (status int, problem string) {
	m.t.Helper()
	if s.status == 0 {
		return 0, m.unconnected(s.site, method, path)
	}
	got := m.send(s.site, method, path, body, joined(header, s.header))
	if got.header.Get("Mcp-Session-Id") != "" || got.status == http.StatusUnauthorized && !strings.HasPrefix(got.header.Get("Www-Authenticate"), "Bearer ") {
		problem = fmt.Sprint(got.status, got.header, got.text)
	}
	return got.status, problem
}

// way is one way to send a request of a method.
type way struct {
	name   string
	path   string
	text   string
	header http.Header
	// next reads the response from another stream; nil if there is none.
	next func() []byte
}

// ways returns all ways to send a request. Their sessions and streams belong to
// the holder of the credential.
func (m *matrix) ways(at site, r mcptest.Request, credential http.Header) (all []way) {
	if r.Modern {
		all = append(all, way{"modern", "/mcp", messageOf(1, r, metaMatrix), modernHeaders(r), nil})
	}
	if r.Early {
		all = append(all, way{"without a session", "/mcp", messageOf(1, r, ""), nil, nil})
	}
	endpoint, next := "", func() []byte { return nil }
	if r.Legacy || r.Modern {
		endpoint, next = m.listen(at, credential)
	}
	if r.Modern {
		all = append(all, way{"modern over HTTP+SSE", endpoint, messageOf(2, r, metaMatrix), nil, next})
	}
	if !r.Legacy {
		return all
	}
	if r.Method != "initialize" {
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			all = append(all, way{"a session of " + version, "/mcp", messageOf(1, r, ""), m.begin(at, version, credential), nil})
		}
		m.send(at, http.MethodPost, endpoint, initialize, credential)
		next()
		m.send(at, http.MethodPost, endpoint, ready, credential)
	}
	return append(all, way{"HTTP+SSE", endpoint, messageOf(3, r, ""), nil, next})
}

// TestUnauthenticated_methods: requests without valid authentication are rejected before
// anything happens, also on sessions and streams of others. The holder of a
// credential is served.
func TestUnauthenticated_methods(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it makes one request at a time")
	}
	blocks, revoked, by := guardedBlocks(t)
	m := newMatrix(t, blocks)
	for _, at := range m.entrances(revoked, by) {
		cells := 0
		for _, r := range mcptest.Requests() {
			for _, w := range m.ways(at.site, r, at.ada) {
				before := m.traces()
				for _, s := range at.clients {
					cells++
					if status, problem := m.try(s, http.MethodPost, w.path, w.text, w.header); status != s.status || problem != "" {
						t.Errorf("%s by %s, %s, with %s: %d %s", r.Method, at.name, w.name, s.name, status, problem)
					}
				}
				if diff := m.left(before); diff != "" {
					t.Errorf("%s by %s, %s: rejected requests had effects (-before +after)\n%s", r.Method, at.name, w.name, diff)
				}
				m.serves(at.site, r, w, at.ada)
			}
		}
		if cells < 40*len(at.clients) {
			t.Errorf("only %d rejected requests by %s", cells, at.name)
		}
	}
}

// serves checks that the request of the credential's holder is served.
func (m *matrix) serves(at site, r mcptest.Request, w way, credential http.Header) {
	m.t.Helper()
	got := m.send(at, http.MethodPost, w.path, w.text, joined(w.header, credential))
	text := got.text
	if w.next != nil {
		text = string(w.next())
	}
	missing := strings.HasPrefix(r.Method, "tasks/") && strings.Contains(text, `"code":-32602`) // unknown task
	if got.status/100 != 2 || !missing && !strings.Contains(text, `"result"`) && !strings.Contains(text, "/acknowledged") {
		m.t.Errorf("%s by %s, %s: %d %s", r.Method, at.name, w.name, got.status, text)
	}
}

// httpMethods are the columns of the expected responses.
var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

const wellKnown = "/.well-known/oauth-protected-resource"

// wantRoutes are the expected responses without authentication, by httpMethods.
func wantRoutes() map[string]string {
	return map[string]string{
		"/mcp":              "401 405 401 405 405 401 405 405",
		"/ws":               "401 401 401 401 401 401 401 401",
		"/sse":              "401 405 405 405 405 405 405 405",
		"/mcp/sse":          "401 405 405 405 405 405 405 405",
		"/messages":         "405 405 401 405 405 405 405 405",
		"/mcp/capabilities": "401 401 405 405 405 405 405 405",
		"/mcp/execute":      "405 405 401 405 405 405 405 405",
		"/console":          "301 301 403 301 301 301 301 301",
		"/console/":         "401 401 403 401 401 401 401 401",
		"/metrics":          "401 401 401 401 401 401 401 401",
		"/healthz":          "200 200 405 405 405 405 405 405",
		"/readyz":           "200 200 405 405 405 405 405 405",
		wellKnown:           "200 200 405 405 405 405 405 405",
		wellKnown + "/":     "404 404 404 404 404 404 404 404",
		"/oauth/":           "404 404 404 404 404 404 404 404",
		"/":                 "404 404 404 404 404 404 404 404",
	}
}

// TestUnauthenticated_routes checks the responses without authentication on each route
// and HTTP method, with the session and the stream of another client.
func TestUnauthenticated_routes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it makes one request at a time")
	}
	blocks, revoked, by := guardedBlocks(t)
	m := newMatrix(t, blocks)
	for _, at := range m.entrances(revoked, by) {
		session := m.begin(at.site, "2025-11-25", at.ada)
		endpoint, next := m.listen(at.site, at.ada)
		before := m.traces()
		for _, s := range at.clients {
			want := map[string]string{}
			for pattern, row := range wantRoutes() {
				if want[pattern] = strings.ReplaceAll(row, "401", fmt.Sprint(s.status)); s.status == 0 {
					want[pattern] = strings.TrimSuffix(strings.Repeat("0 ", len(httpMethods)), " ")
				}
			}
			if diff := cmp.Diff(want, m.routesTo(s, session, endpoint)); diff != "" {
				t.Errorf("by %s, with %s, by %v (-want +got)\n%s", at.name, s.name, httpMethods, diff)
			}
		}
		if diff := m.left(before); diff != "" {
			t.Errorf("by %s: rejected requests had effects (-before +after)\n%s", at.name, diff)
		}
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		if still := m.send(at.site, http.MethodPost, "/mcp", ping, joined(session, at.ada)); still.status != http.StatusOK {
			t.Errorf("by %s: the session of another client ended: %d", at.name, still.status)
		}
		m.send(at.site, http.MethodPost, endpoint, ping, at.ada)
		if answer := string(next()); !strings.Contains(answer, `"id":1,"result"`) {
			t.Errorf("by %s: stream of another client: %s", at.name, answer)
		}
	}
}

// routesTo returns the responses for a rejected client, in the form of [wantRoutes].
func (m *matrix) routesTo(s badClient, session http.Header, endpoint string) map[string]string {
	m.t.Helper()
	socket := http.Header{"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
	got := map[string]string{}
	for _, pattern := range m.front.Routes() {
		path, header := pattern, http.Header{}
		switch pattern {
		case "/mcp":
			header = joined(session, http.Header{http.CanonicalHeaderKey("Last-Event-ID"): {"pAAAA_1"}})
		case "/ws":
			header = joined(socket, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}})
		case "/messages":
			path = endpoint
		}
		var row []string
		for _, method := range httpMethods {
			body := ""
			if method == http.MethodPost {
				body = `{"jsonrpc":"2.0","id":1,"method":"ping","tool":"open","arguments":{}}`
			}
			status, problem := m.try(s, method, path, body, header)
			row = append(row, strings.TrimSpace(fmt.Sprint(status, " ", problem)))
		}
		got[pattern] = strings.Join(row, " ")
	}
	return got
}

// TestRoutes_hostAndOrigin sends requests as a page of another site: with a
// foreign host, and from a foreign origin.
func TestRoutes_hostAndOrigin(t *testing.T) {
	url := listen(t, frontOf(t, outcomeTools))
	for _, route := range []string{"/mcp", "/mcp/sse", "/sse", "/messages", "/ws", "/mcp/capabilities", "/mcp/execute", "/healthz", "/readyz", "/nowhere"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for name, modify := range map[string]func(*http.Request){
				"foreign host":   func(r *http.Request) { r.Host = "evil.example" },
				"foreign origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
			} {
				r, err := http.NewRequest(method, url+route, nil)
				if err != nil {
					t.Fatal(err)
				}
				modify(r)
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s with %s: %s", method, route, name, response.Status)
				}
			}
		}
	}
}

// TestRoutes_errorFormat sends invalid JSON to each route with messages, from a
// page of another site and without an origin.
func TestRoutes_errorFormat(t *testing.T) {
	url := listen(t, frontOf(t, outcomeTools))
	const rpc, rest = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"`, `{"error":"`
	for route, begins := range map[string]string{
		"/mcp": rpc, "/mcp/sse": rpc, "/sse": rpc, "/messages": rpc, "/ws": rpc, "/mcp/execute": rest, "/mcp/capabilities": rest, "/healthz": rest,
	} {
		for origin, status := range map[string]int{"": http.StatusUnsupportedMediaType, "https://evil.example": http.StatusForbidden} {
			r, err := http.NewRequest(http.MethodPost, url+route, strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != status || !strings.HasPrefix(string(body), begins) {
				t.Errorf("%s from %q: %s: %s, %v", route, origin, response.Status, body, err)
			}
		}
	}
}

// revokedKey returns a revoked key of the principal "ci", and the path of its key
// file.
func revokedKey(t testing.TB) (key, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.json")
	k, err := apikey.Add(path, apikey.Record{Name: "ci", Principal: "ci", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = apikey.Revoke(path, k.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	return k.Plaintext(), path
}

// unknownKey returns a valid key that is in no file.
func unknownKey() string { return apikey.New().Plaintext() }

// validKeys returns a key of each principal, and the path of their key file.
func validKeys(t testing.TB, principals ...string) (keys map[string]string, path string) {
	t.Helper()
	path, keys = filepath.Join(t.TempDir(), "keys.json"), map[string]string{}
	for _, p := range principals {
		k, err := apikey.Add(path, apikey.Record{Name: p, Principal: p, Created: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		keys[p] = k.Plaintext()
	}
	return keys, path
}
