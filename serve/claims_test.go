package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// What a message may say of who sends it, beside what is proved. None of it counts.
const (
	claimedMembers = `"principal":{"id":"admin","kind":"local","scopes":["admin"],"groups":["admin"],"claims":{"role":"admin"}},"scopes":["admin"],"groups":["admin"],` +
		`"user":"admin","Authorization":"Bearer admin","authorization":"Bearer admin","access_token":"admin","X-API-Key":"admin","headers":{"Authorization":"Bearer admin"}`
	claimedAgent = `"mcpd/agent":{"agent_id":"admin","model":"admin","metadata":{"scopes":"admin","verified":"true","principal":"admin"}},` +
		`"mcpd/principal":{"id":"admin"},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"mcpd=admin","baggage":"principal=admin,scopes=admin"`
	claimedInfo = `{"name":"admin","version":"1",` + claimedMembers + `}`
	claimedCan  = `{"elicitation":{},"experimental":{"auth":{` + claimedMembers + `}},"extensions":{"io.modelcontextprotocol/tasks":{},"auth":{"scopes":["admin"]}}}`

	lyingModern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` + claimedInfo +
		`,"io.modelcontextprotocol/clientCapabilities":` + claimedCan + `,` + claimedAgent + `,` + claimedMembers + `},` + claimedMembers
	lyingLegacy = `"_meta":{` + claimedAgent + `,` + claimedMembers + `},` + claimedMembers
	lyingHello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + claimedCan +
		`,"clientInfo":` + claimedInfo + `,` + lyingLegacy + `}}`
)

// claimedHeaders are what proxies and others say in headers. None of it counts either.
var claimedHeaders = http.Header{
	"X-Agent-Meta-Scopes": {"admin"}, "X-Forwarded-User": {"admin"}, "X-Remote-User": {"admin"}, "Remote-User": {"admin"}, "X-Scopes": {"admin"},
	"X-Forwarded-For": {"10.9.8.7"}, "X-Real-Ip": {"10.9.8.7"}, "Forwarded": {"for=10.9.8.7"}, "X-Forwarded-Client-Cert": {"Subject=\"CN=admin\""},
	"Proxy-Authorization": {"Bearer admin"}, "Cookie": {"access_token=admin"}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	"Baggage": {"scopes=admin"},
}

// link carries messages of one client; send returns the answer.
type link struct {
	name string
	// modern says which requests are sent on it.
	modern bool
	send   func(r mcptest.Request, id int, text string) string
}

// pipe returns a link of messages and answers that come in some order.
func pipe(write func(string), read func() []byte) func(mcptest.Request, int, string) string {
	return func(_ mcptest.Request, id int, text string) string {
		write(text)
		for {
			answer := string(read())
			if answer == "" || strings.Contains(answer, fmt.Sprintf(`"id":%d,`, id)) || strings.Contains(answer, fmt.Sprintf(`subscriptionId":%d`, id)) {
				return answer
			}
		}
	}
}

// links returns a client of each transport and era that lies from its first message on.
// All but stdio prove who they are by a credential.
func (m *matrix) links(at site, credential http.Header) []link {
	header := joined(credential, claimedHeaders)
	session := http.Header{}
	links := []link{
		{"modern HTTP", true, func(r mcptest.Request, _ int, text string) string {
			return m.send(at, http.MethodPost, "/mcp", text, joined(modernHeaders(r), header)).text
		}},
		{"legacy HTTP", false, func(r mcptest.Request, _ int, text string) string {
			if r.Method == "initialize" || session.Get("Mcp-Session-Id") == "" {
				opened := m.send(at, http.MethodPost, "/mcp", lyingHello, header)
				session.Set("Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"))
				m.send(at, http.MethodPost, "/mcp", ready, joined(session, header))
			}
			return m.send(at, http.MethodPost, "/mcp", text, joined(session, header)).text
		}},
	}
	for name, connect := range map[string]func() (func(string), func() []byte){
		"HTTP+SSE": func() (func(string), func() []byte) {
			endpoint, next := m.listen(at, header)
			return func(text string) { m.send(at, http.MethodPost, endpoint, text, header) }, next
		},
		"WebSocket": func() (func(string), func() []byte) { return m.dial(at, header) },
		"stdio":     m.stdio,
	} {
		write, read := connect()
		links = append(links, link{"modern " + name, true, pipe(write, read)})
		write, read = connect()
		write(lyingHello)
		read()
		write(ready)
		links = append(links, link{"legacy " + name, false, pipe(write, read)})
	}
	return links
}

// dial opens a WebSocket until the test ends.
func (m *matrix) dial(at site, header http.Header) (write func(string), read func() []byte) {
	m.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}, NetDialContext: at.client.Transport.(*http.Transport).DialContext}
	socket, _, err := dialer.DialContext(m.t.Context(), "ws"+strings.TrimPrefix(at.url, "http")+"/ws", header)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = socket.Close() })
	return func(text string) {
			if err := socket.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				m.t.Fatal(err)
			}
		}, func() []byte {
			_, text, err := socket.ReadMessage()
			if err != nil {
				return nil
			}
			return text
		}
}

// stdio opens a client on a pair of pipes until the test ends.
func (m *matrix) stdio() (write func(string), read func() []byte) {
	in, typed := io.Pipe()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- m.front.Stdio(context.Background(), in, out) }()
	m.t.Cleanup(func() {
		typed.Close()
		printed.Close()
		<-ended // that nobody reads any more is no matter here
	})
	lines := bufio.NewReader(printed)
	return func(text string) {
			// A client that has asked for shutdown is not read any more.
			_, _ = io.WriteString(typed, text+"\n")
		}, func() []byte {
			line, _ := lines.ReadBytes('\n')
			return line
		}
}

// TestNothingThatIsSaidChangesWhoCalls: whatever a client says of itself in any place of
// any message, on any transport, its calls are those of who it has proved to be, and
// over stdio of the user there, whom auth blocks ask nothing.
func TestNothingThatIsSaidChangesWhoCalls(t *testing.T) {
	m := newMatrix(t, usersOf(0))
	bob := m.corp.token(map[string]any{"sub": "bob", "scope": "read", "groups": []string{"staff"}})
	proved := identity.Principal{ID: "bob", Kind: identity.KindToken, Issuer: m.corp.Issuer(), Scopes: []string{"read"}, Groups: []string{"staff"}}
	local := identity.Principal{ID: "grace", Kind: identity.KindLocal, Scopes: []string{}, Groups: []string{}}
	for _, at := range m.sites() {
		for _, l := range m.links(at, bob) {
			want := proved
			if strings.HasSuffix(l.name, "stdio") {
				want = local
			}
			from := len(m.calls(0))
			m.lies(l)
			calls := m.calls(from)
			for _, call := range calls {
				who := call.Principal
				if who.Claims["role"] != nil || call.Agent.Verified || call.Source.IP == "10.9.8.7" {
					t.Errorf("%s over %s is of %+v, %+v, from %+v", call.Tool, l.name, who, call.Agent, call.Source)
				}
				who.Claims = nil
				if diff := cmp.Diff(want, who); diff != "" {
					t.Errorf("%s over %s is of another (-want +got)\n%s", call.Tool, l.name, diff)
				}
			}
			if len(calls) != 5 {
				t.Errorf("over %s there were %d calls, want one for each of the five methods that make one", l.name, len(calls))
			}
		}
	}
}

// lies sends a request of every method, and the call of what admins may use.
func (m *matrix) lies(l link) {
	m.t.Helper()
	meta := lyingLegacy
	if l.modern {
		meta = lyingModern
	}
	admin := mcptest.Request{Method: "tools/call", Legacy: true, Modern: true, Name: "admin", Params: `"name":"admin","arguments":{}`}
	last := mcptest.Request{}
	for id, r := range append(mcptest.Requests(), admin) {
		switch {
		case r.Method == "shutdown":
			last = r
			continue
		case l.modern && !r.Modern || !l.modern && !r.Legacy:
			continue
		}
		answer := l.send(r, 100+id, messageOf(100+id, r, meta))
		if answer == "" || strings.Contains(answer, `"code":-32601`) {
			m.t.Errorf("%s over %s is answered with %q", r.Method, l.name, answer)
		}
		if r.Name == "admin" && !strings.Contains(answer, "POLICY_DENIED") || strings.HasSuffix(r.Method, "/list") && strings.Contains(answer, `"name":"admin"`) {
			m.t.Errorf("%s over %s has %s", r.Method, l.name, answer)
		}
	}
	if !l.modern {
		l.send(last, 99, messageOf(99, last, meta))
	}
}

// TestTheRESTWireTakesNobodysWord either.
func TestTheRESTWireTakesNobodysWord(t *testing.T) {
	m := newMatrix(t, usersOf(0))
	bob := joined(m.corp.token(map[string]any{"sub": "bob"}), claimedHeaders)
	const agent = `"agent":{"agent_id":"admin","model":"admin","metadata":{"scopes":"admin","principal":"admin"}}`
	for _, at := range m.sites() {
		for body, status := range map[string]int{
			`{"tool":"open","arguments":{},` + agent + `}`:                           http.StatusOK,
			`{"tool":"admin","arguments":{},` + agent + `}`:                          http.StatusForbidden,
			`{"tool":"open","arguments":{},"principal":{"id":"admin"}}`:              http.StatusBadRequest,
			`{"tool":"open","arguments":{},"agent":{"verified":true}}`:               http.StatusBadRequest,
			`{"tool":"open","arguments":{},"agent":{"scopes":["admin"]}}`:            http.StatusBadRequest,
			`{"tool":"open","arguments":{"principal":{"id":"admin"}},` + agent + `}`: http.StatusBadRequest,
		} {
			if got := m.send(at, http.MethodPost, "/mcp/execute", body, bob); got.status != status {
				t.Errorf("%s by %s got %d %s, want %d", body, at.name, got.status, got.text, status)
			}
		}
		if got := m.send(at, http.MethodGet, "/mcp/capabilities", "", bob); got.status != http.StatusOK || strings.Contains(got.text, `"admin"`) {
			t.Errorf("by %s the list is %d %s", at.name, got.status, got.text)
		}
	}
	for _, call := range m.calls(0) {
		if call.Principal.ID != "bob" || len(call.Principal.Scopes) > 0 || call.Agent.Verified {
			t.Errorf("%s is of %+v", call.Tool, call.Caller)
		}
	}
}
