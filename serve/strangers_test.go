package serve_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/authn/idptest"
	"github.com/mcpd/mcpd/internal/mcp/mcptest"
)

// knowsPeers says that this system tells who holds the other end of a socket.
const knowsPeers = runtime.GOOS == "linux"

// usersOf returns the auth block that lets in a user of this machine; nothing where
// the system tells of none.
func usersOf(uid int) string {
	if !knowsPeers {
		return ""
	}
	return fmt.Sprintf("auth \"unix\" \"users\" {\n  uids = [%d]\n}\n", uid)
}

// strangers are those who prove nothing.
func (m *matrix) strangers() map[string]http.Header {
	return map[string]http.Header{
		"nothing":                    {},
		"what it claims":             {"X-Agent-Id": {"ada"}, "X-Agent-Meta-Scopes": {"admin"}, "X-Forwarded-User": {"ada"}},
		"a password":                 {"Authorization": {"Basic YWRhOmFkYQ=="}},
		"a key, where none is known": {"X-Api-Key": {"mcpd_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
		"an expired token":           m.corp.token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"a token for others":         m.corp.token(map[string]any{"aud": "https://other.example.com"}),
		"a token of a stranger":      issuer{m.corp.Provider, idptest.NewKey("k1", "ES256")}.token(nil),
		"a token of another issuer":  issuer{m.other.Provider, m.corp.key}.token(nil),
	}
}

// way is one way to send a request of a method.
type way struct {
	name   string
	path   string
	text   string
	header http.Header
	// next reads the answer where another stream carries it; nil where none does.
	next func() []byte
}

// ways returns all ways to send a request. The sessions and streams in them belong to who
// has the credential.
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
	}
	return append(all, way{"HTTP+SSE", endpoint, messageOf(3, r, ""), nil, next})
}

// TestNoMethodIsServedToStrangers: what they send is refused before anything is done,
// also on the sessions and streams of others. Who has a credential is served.
func TestNoMethodIsServedToStrangers(t *testing.T) {
	m := newMatrix(t, usersOf(os.Getuid()+1))
	ada, strangers := m.corp.token(nil), m.strangers()
	cells := 0
	for _, at := range m.sites() {
		for _, r := range mcptest.Requests() {
			for _, w := range m.ways(at, r, ada) {
				before := m.traces()
				for name, credential := range strangers {
					cells++
					got := m.send(at, http.MethodPost, w.path, w.text, joined(w.header, credential))
					if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("Www-Authenticate"), "Bearer ") || got.header.Get("Mcp-Session-Id") != "" {
						t.Errorf("%s by %s, %s, with %s: %d %s", r.Method, at.name, w.name, name, got.status, got.text)
					}
				}
				if diff := cmp.Diff(before, m.traces()); diff != "" {
					t.Errorf("%s by %s, %s: strangers leave traces (-before +after)\n%s", r.Method, at.name, w.name, diff)
				}
				m.serves(at, r, w, ada)
			}
		}
	}
	if cells < 2*40*len(strangers) && knowsPeers {
		t.Errorf("only %d requests of strangers were tried", cells)
	}
}

// serves makes sure that a request is served to who has the credential.
func (m *matrix) serves(at site, r mcptest.Request, w way, credential http.Header) {
	m.t.Helper()
	got := m.send(at, http.MethodPost, w.path, w.text, joined(w.header, credential))
	text := got.text
	if w.next != nil {
		text = string(w.next())
	}
	missing := strings.HasPrefix(r.Method, "tasks/") && strings.Contains(text, `"code":-32602`) // there is no such task
	if got.status/100 != 2 || !missing && !strings.Contains(text, `"result"`) && !strings.Contains(text, "/acknowledged") {
		m.t.Errorf("%s by %s, %s: %d %s", r.Method, at.name, w.name, got.status, text)
	}
}

// httpMethods are the columns of what routes answer.
var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

const wellKnown = "/.well-known/oauth-protected-resource"

// toStrangers is what routes answer to them, by httpMethods.
func toStrangers() map[string]string {
	return map[string]string{
		"/mcp":              "401 405 401 405 405 401 405 405",
		"/ws":               "401 401 401 401 401 401 401 401",
		"/sse":              "401 405 405 405 405 405 405 405",
		"/mcp/sse":          "401 405 405 405 405 405 405 405",
		"/messages":         "405 405 401 405 405 405 405 405",
		"/mcp/capabilities": "401 401 405 405 405 405 405 405",
		"/mcp/execute":      "405 405 401 405 405 405 405 405",
		"/metrics":          "401 401 401 401 401 401 401 401",
		"/healthz":          "200 200 405 405 405 405 405 405",
		"/readyz":           "200 200 405 405 405 405 405 405",
		wellKnown:           "200 200 405 405 405 405 405 405",
		wellKnown + "/":     "404 404 404 404 404 404 404 404",
		"/oauth/":           "404 404 404 404 404 404 404 404",
		"/":                 "404 404 404 404 404 404 404 404",
	}
}

// TestNoRouteIsOpenThatIsNotMeantToBe: what strangers get on each route by each method
// of HTTP, with the session and the stream of somebody else.
func TestNoRouteIsOpenThatIsNotMeantToBe(t *testing.T) {
	m := newMatrix(t, usersOf(os.Getuid()+1))
	for _, at := range m.sites() {
		ada := m.corp.token(nil)
		session := m.begin(at, "2025-11-25", ada)
		endpoint, next := m.listen(at, ada)
		socket := http.Header{"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
		before, got := m.traces(), map[string]string{}
		for _, pattern := range m.front.Routes() {
			path, header := pattern, http.Header{}
			switch pattern {
			case "/mcp":
				header = joined(session, http.Header{"Last-Event-Id": {"pAAAA_1"}})
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
				row = append(row, fmt.Sprint(m.send(at, method, path, body, header).status))
			}
			got[pattern] = strings.Join(row, " ")
		}
		if diff := cmp.Diff(toStrangers(), got); diff != "" {
			t.Errorf("by %s strangers get, by %v (-want +got)\n%s", at.name, httpMethods, diff)
		}
		if diff := cmp.Diff(before, m.traces()); diff != "" {
			t.Errorf("by %s strangers leave traces (-before +after)\n%s", at.name, diff)
		}
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		if still := m.send(at, http.MethodPost, "/mcp", ping, joined(session, ada)); still.status != http.StatusOK {
			t.Errorf("by %s the session of another is gone: %d", at.name, still.status)
		}
		m.send(at, http.MethodPost, endpoint, ping, ada)
		if answer := string(next()); !strings.Contains(answer, `"id":1,"result"`) {
			t.Errorf("by %s the stream of another says %s", at.name, answer)
		}
	}
}
