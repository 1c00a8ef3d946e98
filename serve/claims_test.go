package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// Claims in a message about its sender. None has an effect.
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

// claimedHeaders are headers that proxies and others send. None has an effect.
var claimedHeaders = http.Header{
	"X-Agent-Meta-Scopes": {"admin"}, "X-Forwarded-User": {"admin"}, "X-Remote-User": {"admin"}, "Remote-User": {"admin"}, "X-Scopes": {"admin"},
	"X-Forwarded-For": {"10.9.8.7"}, "X-Real-Ip": {"10.9.8.7"}, "Forwarded": {"for=10.9.8.7"}, "X-Forwarded-Client-Cert": {"Subject=\"CN=admin\""},
	"Proxy-Authorization": {"Bearer admin"}, "Cookie": {"access_token=admin"}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	"Baggage": {"scopes=admin"},
}

// link carries messages of one client; send returns the response.
type link struct {
	name string
	// modern reports which requests are sent on it.
	modern bool
	send   func(r mcptest.Request, id int, text string) string
}

// pipe returns a link of messages and responses in any order.
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

// links returns a client of each transport and era that sends false claims from
// its first message on. All but stdio authenticate with a credential.
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
		<-ended // a stopped reader does not matter here
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

// TestPrincipal_ignoresClaims: on every transport, no claim in a message
// changes the principal of its calls. Over stdio the principal is the local
// user, without auth blocks.
func TestPrincipal_ignoresClaims(t *testing.T) {
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
			m.sendClaims(l)
			calls := m.calls(from)
			for _, call := range calls {
				who := call.Principal
				if who.Claims["role"] != nil || call.Agent.Verified || call.Source.IP == "10.9.8.7" {
					t.Errorf("%s over %s: %+v, %+v, from %+v", call.Tool, l.name, who, call.Agent, call.Source)
				}
				who.Claims = nil
				if diff := cmp.Diff(want, who); diff != "" {
					t.Errorf("%s over %s has another principal (-want +got)\n%s", call.Tool, l.name, diff)
				}
			}
			if len(calls) != 5 {
				t.Errorf("%s: %d calls, want one for each of the five calling methods", l.name, len(calls))
			}
		}
	}
}

// sendClaims sends a request of every method, and a call of a tool for admins.
func (m *matrix) sendClaims(l link) {
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
			m.t.Errorf("%s over %s: response %q", r.Method, l.name, answer)
		}
		if r.Name == "admin" && !strings.Contains(answer, "POLICY_DENIED") || strings.HasSuffix(r.Method, "/list") && strings.Contains(answer, `"name":"admin"`) {
			m.t.Errorf("%s over %s: %s", r.Method, l.name, answer)
		}
	}
	if !l.modern {
		l.send(last, 99, messageOf(99, last, meta))
	}
}

// TestPrincipal_ignoresClaimsREST is the same for REST.
func TestPrincipal_ignoresClaimsREST(t *testing.T) {
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
				t.Errorf("%s by %s: %d %s, want %d", body, at.name, got.status, got.text, status)
			}
		}
		if got := m.send(at, http.MethodGet, "/mcp/capabilities", "", bob); got.status != http.StatusOK || strings.Contains(got.text, `"admin"`) {
			t.Errorf("list by %s: %d %s", at.name, got.status, got.text)
		}
	}
	for _, call := range m.calls(0) {
		if call.Principal.ID != "bob" || len(call.Principal.Scopes) > 0 || call.Agent.Verified {
			t.Errorf("%s: %+v", call.Tool, call.Caller)
		}
	}
}

// Claims of a request from bot that claims to be evil, in its body and in its
// headers.
const (
	evilTrace  = "0af7651916cd43dd8448eb211c80319c"
	evilAgent  = `{"agent_id":"evil","request_id":"r-7"}`
	evilMeta   = `"mcpd/agent":` + evilAgent + `,"traceparent":"00-` + evilTrace + `-b7ad6b7169203331-01"`
	evilModern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{},` + evilMeta + `}`
	evilLegacy = `"_meta":{` + evilMeta + `}`
)

var evilHeaders = http.Header{"X-Agent-Id": {"evil"}, "X-Request-Id": {"r-7"}, "Traceparent": {"00-" + evilTrace + "-b7ad6b7169203331-01"}}

// claim is one way to claim an agent, and the expected event.
type claim struct {
	name string
	// send returns the status, 0 for a transport without statuses, and the
	// response.
	send func() (int, string)
	// event are members of the event; for nil, those of a complete request.
	event map[string]string
}

// TestAgentMismatch_claim: each request is audited once, with the claimed agent
// and the request id.
func TestAgentMismatch_claim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	local := serve.LocalPrincipal("1000", "grace")
	local.Agent = "bot"
	m := newMatrixOf(t, usersOf(0)+fmt.Sprintf("audit {\n  path = %q\n  mode = \"strict\"\n}\n", path), local)
	credential := m.corp.token(map[string]any{"agent": "bot"})
	for _, at := range m.sites() {
		who := map[string]string{"principal": "ada", "kind": "jwt", "issuer": m.corp.Issuer(), "ip": "127.0.0.1"}
		if at.name == "unix" {
			delete(who, "ip")
		}
		for _, c := range m.claims(at, credential) {
			m.checkMismatch(path, at.name+", "+c.name, c, who)
		}
	}
	for _, c := range m.messageClaims("stdio", m.stdio, map[string]string{}) {
		m.checkMismatch(path, c.name, c, map[string]string{"principal": "grace", "kind": "local", "listener": "stdio"})
	}
	if calls := m.calls(0); len(calls) > 0 {
		t.Errorf("%d calls were made: %+v", len(calls), calls[0])
	}
	if line := lineWith(m.log.String(), "reject request of mismatched agent"); !strings.Contains(line, "claimed=evil") || !strings.Contains(line, "request_id=r-7") {
		t.Errorf("log: %s", line)
	}
}

// checkMismatch checks that a claim is rejected with one event.
func (m *matrix) checkMismatch(path, name string, c claim, who map[string]string) {
	m.t.Helper()
	before := len(mismatchEvents(m.t, path))
	status, answer := c.send()
	if status != http.StatusForbidden && status != 0 || !strings.Contains(answer, "the credential is bound to another agent") {
		m.t.Errorf("%s: %d %s", name, status, answer)
	}
	want := map[string]string{"agent": "bot", "claimed": "evil", "by": "claim", "request_id": "r-7", "method": "tools/call", "name": "open", "trace_id": evilTrace}
	maps.Copy(want, who)
	maps.Copy(want, c.event)
	maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
	if diff := cmp.Diff([]map[string]string{want}, mismatchEvents(m.t, path)[before:]); diff != "" {
		m.t.Errorf("event of %s (-want +got)\n%s", name, diff)
	}
}

// claims returns the ways to claim an agent over HTTP.
func (m *matrix) claims(at site, credential http.Header) []claim {
	post := func(path, body string, header http.Header) func() (int, string) {
		return func() (int, string) {
			got := m.send(at, http.MethodPost, path, body, joined(credential, header))
			return got.status, got.text
		}
	}
	open, list := mcptest.Request{Method: "tools/call", Name: "open", Params: `"name":"open","arguments":{}`}, mcptest.Request{Method: "tools/list"}
	// The URI of a template holds arguments, so it is not audited.
	page := mcptest.Request{Method: "resources/read", Name: "page:t0ps3cret", Params: `"uri":"page:t0ps3cret"`}
	session := m.begin(at, "2025-11-25", credential)
	unread := map[string]string{"name": ""} // the request is rejected before its body is read
	claims := []claim{
		{"REST, header", post("/mcp/execute", `{"tool":"open","arguments":{}}`, evilHeaders), unread},
		{"REST, member", post("/mcp/execute", `{"tool":"open","arguments":{},"agent":`+evilAgent+`}`, http.Header{"Traceparent": evilHeaders["Traceparent"]}), nil},
		{"REST, a long name", post("/mcp/execute", `{"tool":"`+strings.Repeat("ü", 300)+`","arguments":{},"agent":`+evilAgent+`}`, http.Header{"Traceparent": evilHeaders["Traceparent"]}), map[string]string{"name": strings.Repeat("ü", 256) + "…"}},
		{"REST, list", func() (int, string) {
			got := m.send(at, http.MethodGet, "/mcp/capabilities", "", joined(credential, evilHeaders))
			return got.status, got.text
		}, map[string]string{"method": "tools/list", "name": ""}},
		{"modern HTTP, header", post("/mcp", messageOf(1, open, metaMatrix), joined(modernHeaders(open), evilHeaders)), nil},
		{"modern HTTP, _meta", post("/mcp", messageOf(1, open, evilModern), modernHeaders(open)), nil},
		{"modern HTTP, list", post("/mcp", messageOf(1, list, evilModern), modernHeaders(list)), map[string]string{"method": "tools/list", "name": ""}},
		{"modern HTTP, a URI", post("/mcp", messageOf(1, page, evilModern), modernHeaders(page)), map[string]string{"method": "resources/read", "name": ""}},
		{"legacy HTTP, header", post("/mcp", messageOf(1, open, ""), joined(session, evilHeaders)), nil},
		{"legacy HTTP, _meta", post("/mcp", messageOf(1, open, evilLegacy), session), nil},
	}
	claims = append(claims, m.messageClaims("WebSocket", func() (func(string), func() []byte) { return m.dial(at, credential) }, nil)...)
	claims = append(claims, m.messageClaims("HTTP+SSE", func() (func(string), func() []byte) { return m.stream(at, credential, credential) }, nil)...)
	// The headers of a connection belong to no trace of its requests.
	write, read := m.dial(at, joined(credential, evilHeaders))
	claims = append(claims, claim{"WebSocket, header", sendWithoutStatus(pipe(write, read), messageOf(1, open, metaMatrix)), map[string]string{"trace_id": ""}})
	write, read = m.stream(at, joined(credential, evilHeaders), credential)
	claims = append(claims, claim{"HTTP+SSE, header", sendWithoutStatus(pipe(write, read), messageOf(1, open, metaMatrix)), map[string]string{"trace_id": ""}})
	write, read = m.stream(at, credential, joined(credential, evilHeaders))
	return append(claims, claim{"HTTP+SSE, header of the message", sendWithoutStatus(pipe(write, read), messageOf(1, open, metaMatrix)), nil})
}

// stream opens an HTTP+SSE stream with one header, and sends messages with
// another.
func (m *matrix) stream(at site, opened, sent http.Header) (write func(string), read func() []byte) {
	endpoint, next := m.listen(at, opened)
	return func(text string) { m.send(at, http.MethodPost, endpoint, text, sent) }, next
}

// messageClaims returns the ways to claim an agent on a transport with messages.
func (m *matrix) messageClaims(name string, connect func() (func(string), func() []byte), notified map[string]string) []claim {
	open := mcptest.Request{Method: "tools/call", Name: "open", Params: `"name":"open","arguments":{}`}
	modern, read := connect()
	legacy, readLegacy := connect()
	legacy(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	readLegacy()
	legacy(ready)
	return []claim{
		{"modern " + name, sendWithoutStatus(pipe(modern, read), messageOf(1, open, evilModern)), notified},
		{"legacy " + name, sendWithoutStatus(pipe(legacy, readLegacy), messageOf(1, open, evilLegacy)), notified},
	}
}

// sendWithoutStatus sends a message on a transport without response statuses.
func sendWithoutStatus(send func(mcptest.Request, int, string) string, text string) func() (int, string) {
	return func() (int, string) { return 0, send(mcptest.Request{}, 1, text) }
}

// mismatchEvents returns the agent mismatch events of an audit log.
func mismatchEvents(t *testing.T, path string) (all []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var one struct {
			Event      string `json:"event.name"`
			Attributes map[string]string
		}
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		if one.Event == "agent.contradicted" {
			all = append(all, one.Attributes)
		}
	}
	return all
}

// lineWith returns the first line of a log with a text.
func lineWith(log, output string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, output) {
			return line
		}
	}
	return ""
}

// TestAgentMismatch_connection: the response and the log have the same request
// id.
func TestAgentMismatch_connection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	m := newMatrix(t, fmt.Sprintf(`
listen {
  tls {
    cert_file      = "cert.pem"
    key_file       = "key.pem"
    client_ca_file = "ca.pem"
  }
}
auth "mtls" "fleet" { agent = true }
audit {
  path = %q
  mode = "strict"
}
`, path))
	handler, err := m.front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{DNSNames: []string{"evil"}, NotAfter: time.Now().Add(time.Hour), SerialNumber: big.NewInt(1)}
	for _, chosen := range []string{"r-7", ""} {
		r := httptest.NewRequest(http.MethodPost, "https://127.0.0.1:8080/mcp", strings.NewReader("{}"))
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
		r.Header = joined(http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Traceparent": evilHeaders["Traceparent"]},
			m.corp.token(map[string]any{"agent": "bot"}))
		if chosen != "" {
			r.Header.Set("X-Request-Id", chosen)
		}
		before := len(mismatchEvents(t, path))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		id := w.Header().Get("X-Request-Id")
		if w.Code != http.StatusForbidden || id == "" || chosen != "" && id != chosen {
			t.Errorf("%d %s, request id %q, want %q", w.Code, w.Body, id, chosen)
		}
		want := map[string]string{
			"agent": "bot", "claimed": "evil", "by": "connection", "request_id": id, "path": "/mcp", "trace_id": evilTrace,
			"principal": "ada", "kind": "jwt", "issuer": m.corp.Issuer(), "ip": "192.0.2.1",
		}
		if diff := cmp.Diff([]map[string]string{want}, mismatchEvents(t, path)[before:]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if line := lineWith(m.log.String(), "request_id="+id); line == "" {
			t.Errorf("the log lacks the request id %s", id)
		}
	}
}
