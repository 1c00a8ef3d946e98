package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// matrix is a server with two identity providers. It counts all effects of
// requests.
type matrix struct {
	t           *testing.T
	front       *serve.Front
	corp, other issuer
	log         syncBuffer

	mu     sync.Mutex
	events []call.Event // the starts of calls
}

// site is a way to reach the server over HTTP.
type site struct {
	name, url string
	client    *http.Client
}

// issuer is a provider with its signing key.
type issuer struct {
	*idptest.Provider
	key *idptest.Key
}

const matrixAudience = "https://mcp.example.com/mcp"

// matrixTools are tools for all, for "ada" of the first provider, and for
// scopes, groups, roles and verified agents that no caller has. Two of them
// ask.
const matrixTools = `
tool "open" {
  run = "log.info('a script ran'); return 'open';"
}
tool "private" {
  run = "log.info('a script ran'); return 'private';"
}
tool "admin" {
  run = "log.info('a script ran'); return 'admin';"
}
tool "asks" {
  task = "optional"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    log.info('a script ran');
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return 'told ' + (await elicit('who', { message: 'who?', schema })).content.name;
  JS
}
tool "long" {
  task = "required"
  run  = "log.info('a script ran'); return 'long';"
}
resource "open" {
  uri = "test://open"
  run = "log.info('a script ran'); return 'open';"
}
resource "private" {
  uri = "test://private"
  run = "log.info('a script ran'); return 'private';"
}
prompt "open" {
  argument "a" { values = ["x", "y"] }
  run = "log.info('a script ran'); return 'open';"
}
prompt "private" {
  argument "a" { values = ["x", "y"] }
  run = "log.info('a script ran'); return 'private';"
}
policy "of_ada" {
  tools     = ["private"]
  resources = ["private"]
  prompts   = ["private"]
  deny      = "principal.id != 'ada' || principal.issuer != '%s' || agent.verified"
  disclose  = "hide"
  reason    = "It is hers"
}
policy "of_admins" {
  tools  = ["admin"]
  reason = "Only admins may"
  allow  = <<CEL
    'admin' in principal.scopes || 'admin' in principal.groups || principal.id == 'admin' || agent.verified ||
      has(principal.claims.role) || source.ip == '10.9.8.7'
  CEL
}
`

// newMatrix returns a server with the blocks in addition to the providers.
func newMatrix(t *testing.T, blocks string) *matrix {
	t.Helper()
	return newMatrixOf(t, blocks, serve.LocalPrincipal("1000", "grace"))
}

// newMatrixOf is newMatrix for a user at the other end of stdio.
func newMatrixOf(t *testing.T, blocks string, local identity.Principal) *matrix {
	t.Helper()
	m := &matrix{t: t}
	config := blocks + "console {\n  allow = \"principal.id == 'ada'\"\n}\n"
	for name, i := range map[string]*issuer{"corp": &m.corp, "other": &m.other} {
		i.key = idptest.NewKey("k1", "ES256")
		i.Provider = idptest.New(t, i.key)
		config += fmt.Sprintf("auth \"oidc\" %q {\n  issuer   = %q\n  audience = %q\n  agent    = \"agent\"\n}\n", name, i.Issuer(), matrixAudience)
	}
	s, err := engine.New(engine.Options{
		Name: "test", Front: withoutTLS{}, Extensions: []engine.Extension{oidc.New(), telemetry.New(telemetry.Options{})},
		Logger: slog.New(slog.NewTextHandler(&m.log, nil)), Hooks: []engine.Hook{m.hook},
		Files: engine.Files{
			Tools:  fstest.MapFS{"t.hcl": {Data: fmt.Appendf(nil, matrixTools, m.corp.Issuer()), Mode: 0o644}},
			Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.front = serve.New(s, serve.Options{Local: local, Console: &fakeConsole{}})
	t.Cleanup(func() {
		if err := m.front.Shutdown(context.Background()); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	return m
}

func (m *matrix) hook(_ context.Context, e call.Event) {
	if e.Phase == call.Start {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.events = append(m.events, e)
	}
}

// calls returns the starts of calls from an index on.
func (m *matrix) calls(from int) []call.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]call.Event(nil), m.events[from:]...)
}

// traces are the effects of requests on a server.
type traces struct {
	Calls, Bodies int
	Sessions      map[string]int
}

func (m *matrix) traces() traces {
	return traces{len(m.calls(0)), strings.Count(m.log.String(), "a script ran"), m.front.Sessions()}
}

// left returns the new effects since before. Streams that have ended do not
// count, because the server may notice the end of a served client late.
func (m *matrix) left(before traces) string {
	now := m.traces()
	for transport, n := range now.Sessions {
		now.Sessions[transport] = max(n, before.Sessions[transport])
	}
	return cmp.Diff(before, now)
}

// sites returns the server on an address and, if supported, on a socket.
func (m *matrix) sites() []site {
	m.t.Helper()
	handler, err := m.front.Handler()
	if err != nil {
		m.t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "mcpd") // a path that is short enough for a socket
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { os.RemoveAll(folder) })
	var sites []site
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(folder, "s")} {
		if network == "unix" && !peersSupported {
			continue
		}
		listener, err := net.Listen(network, address)
		if err != nil {
			m.t.Fatal(err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ConnContext: authn.ConnContext}}
		server.Start()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
		}}
		m.t.Cleanup(func() {
			transport.CloseIdleConnections()
			server.CloseClientConnections()
			server.Close()
		})
		url := "http://" + listener.Addr().String()
		if network == "unix" {
			url = "http://localhost"
		}
		sites = append(sites, site{network, url, &http.Client{Transport: transport}})
	}
	return sites
}

// token returns a token about "ada", with some claims changed.
func (i issuer) token(changed map[string]any) http.Header {
	now := time.Now()
	claims := map[string]any{"iss": i.Issuer(), "aud": matrixAudience, "sub": "ada", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for name, value := range changed {
		claims[name] = value
	}
	return http.Header{"Authorization": {"Bearer " + idptest.Sign(i.key, nil, claims)}}
}

// joined returns merged headers.
func joined(all ...http.Header) http.Header {
	h := http.Header{}
	for _, one := range all {
		for name, values := range one {
			h[name] = values
		}
	}
	return h
}

// httpReply is the response to a request.
type httpReply struct {
	status int
	header http.Header
	// text is a plain body, or the first event of a stream, which the client then
	// leaves.
	text string
}

// send sends a request and reads the response.
func (m *matrix) send(at site, method, path, body string, header http.Header) httpReply {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	response, events := m.open(ctx, at, method, path, body, header)
	defer response.Body.Close()
	s := httpReply{status: response.StatusCode, header: response.Header}
	if events != nil {
		s.text = string(events())
		return s
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
	s.text = string(text)
	return s
}

// open sends a request. events reads the events of the response; it is nil if
// that is not a stream.
func (m *matrix) open(ctx context.Context, at site, method, path, body string, header http.Header) (response *http.Response, events func() []byte) {
	m.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, at.url+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header = joined(http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}, header)
	if response, err = at.client.Transport.RoundTrip(request); err != nil {
		m.t.Fatalf("%s %s: %v", method, path, err)
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return response, nil
	}
	lines := bufio.NewReader(response.Body)
	return response, func() []byte {
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return nil
			}
			if data := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data:"))); len(data) > 0 && bytes.HasPrefix(line, []byte("data:")) {
				return data
			}
		}
	}
}

const metaMatrix = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// messageOf returns a request as a message, with more members of its params.
func messageOf(id int, r mcptest.Request, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, r.Method, strings.Trim(more+","+r.Params, ","))
}

// modernHeaders returns the headers of a modern request.
func modernHeaders(r mcptest.Request) http.Header {
	h := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {r.Method}}
	if r.Name != "" {
		h.Set("Mcp-Name", r.Name)
	}
	return h
}

// modern sends a modern request.
func (m *matrix) modern(at site, r mcptest.Request, header http.Header) httpReply {
	m.t.Helper()
	return m.send(at, http.MethodPost, "/mcp", messageOf(1, r, metaMatrix), joined(modernHeaders(r), header))
}

// begin opens a session of a revision, and returns the headers of its messages.
func (m *matrix) begin(at site, version string, header http.Header) http.Header {
	m.t.Helper()
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, version)
	opened := m.send(at, http.MethodPost, "/mcp", text, header)
	id := opened.header.Get("Mcp-Session-Id")
	if id == "" {
		m.t.Fatalf("no session: %d %s", opened.status, opened.text)
	}
	session := http.Header{"Mcp-Session-Id": {id}}
	if version >= "2025-06-18" {
		session.Set("Mcp-Protocol-Version", version)
	}
	m.send(at, http.MethodPost, "/mcp", ready, joined(session, header))
	return session
}

// listen opens an HTTP+SSE stream until the test ends. next reads its events.
func (m *matrix) listen(at site, header http.Header) (endpoint string, next func() []byte) {
	m.t.Helper()
	response, events := m.open(m.t.Context(), at, http.MethodGet, "/sse", "", header)
	if events == nil {
		m.t.Fatalf("no stream: %s", response.Status)
	}
	m.t.Cleanup(func() { response.Body.Close() })
	return string(events()), events
}

// decoded returns the decoded JSON.
func decoded[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}
