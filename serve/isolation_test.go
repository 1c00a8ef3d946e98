package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// otherCallers are callers with access that are not "ada" of the first provider,
// or not with the same agent.
func (m *matrix) otherCallers() map[string]http.Header {
	return map[string]http.Header{
		"other user of her provider":    m.corp.token(map[string]any{"sub": "bob"}),
		"same name at another provider": m.other.token(nil),
		"her credential for an agent":   m.corp.token(map[string]any{"agent": "bot-7"}),
		"no credential":                 {}, // anonymous, and on a socket the local user
	}
}

// otherCallerBlocks are the auth blocks that accept all other callers.
func otherCallerBlocks() string { return "auth \"anonymous\" \"all\" {}\n" + usersOf(os.Getuid()) }

const pingText = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// TestSession_otherPrincipal: for others a session does not exist, nor its
// HTTP+SSE stream, whatever they send.
func TestSession_otherPrincipal(t *testing.T) {
	m := newMatrix(t, otherCallerBlocks())
	ada := m.corp.token(nil)
	texts := map[string]string{
		"a notification": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		"a response":     `{"jsonrpc":"2.0","id":"1","result":{}}`,
		"batch":          `[` + pingText + `]`,
	}
	for _, r := range mcptest.Requests() {
		if r.Legacy {
			texts[r.Method] = messageOf(1, r, "")
		}
	}
	for _, at := range m.sites() {
		endpoint, next := m.listen(at, ada)
		m.send(at, http.MethodPost, endpoint, initialize, ada)
		next()
		m.send(at, http.MethodPost, endpoint, ready, ada)
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			session := m.begin(at, version, ada)
			before := m.traces()
			for name, credential := range m.otherCallers() {
				for what, text := range texts {
					for path, header := range map[string]http.Header{"/mcp": joined(session, credential), endpoint: credential} {
						if got := m.send(at, http.MethodPost, path, text, header); got.status != http.StatusNotFound {
							t.Errorf("%s by %s on a session of %s, from %s: %d %s", what, at.name, version, name, got.status, got.text)
						}
					}
				}
				for _, method := range []string{http.MethodGet, http.MethodDelete} {
					if got := m.send(at, method, "/mcp", "", joined(session, credential)); got.status != http.StatusNotFound {
						t.Errorf("%s by %s of a session of %s, from %s: %d %s", method, at.name, version, name, got.status, got.text)
					}
				}
			}
			if diff := m.left(before); diff != "" {
				t.Errorf("by %s: others affected a session of %s (-before +after)\n%s", at.name, version, diff)
			}
			if still := m.send(at, http.MethodPost, "/mcp", pingText, joined(session, ada)); still.status != http.StatusOK {
				t.Errorf("by %s: the session of %s ended: %d", at.name, version, still.status)
			}
		}
		m.send(at, http.MethodPost, endpoint, pingText, ada)
		if answer := string(next()); !strings.Contains(answer, `"id":1,"result"`) {
			t.Errorf("by %s: stream: %s", at.name, answer)
		}
	}
}

// TestAsk_otherPrincipal: others who know all ids cannot answer, cancel or read
// a call that waits for its client on their own sessions.
func TestAsk_otherPrincipal(t *testing.T) {
	m := newMatrix(t, otherCallerBlocks())
	ada := m.corp.token(nil)
	const call = `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"asks","arguments":{}}}`
	const answer = `{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"name":%q}}}`
	for _, at := range m.sites() {
		hers := m.begin(at, "2025-11-25", ada)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		response, events := m.open(ctx, at, http.MethodPost, "/mcp", call, joined(hers, ada))
		defer response.Body.Close()
		asked := decoded[struct{ ID, Method string }](t, string(events()))
		if asked.Method != "elicitation/create" {
			t.Fatalf("input request: %+v", asked)
		}
		for name, credential := range m.otherCallers() {
			own := m.begin(at, "2025-11-25", credential)
			for _, text := range []string{fmt.Sprintf(answer, asked.ID, "nobody"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`} {
				if got := m.send(at, http.MethodPost, "/mcp", text, joined(own, credential)); got.status != http.StatusAccepted {
					t.Errorf("%s by %s: %d %s", name, at.name, got.status, got.text)
				}
			}
		}
		if got := m.send(at, http.MethodPost, "/mcp", fmt.Sprintf(answer, asked.ID, "Ann"), joined(hers, ada)); got.status != http.StatusAccepted {
			t.Fatalf("response: %d %s", got.status, got.text)
		}
		if got := string(events()); !strings.Contains(got, "told Ann") {
			t.Errorf("by %s: the call ended with %s", at.name, got)
		}
	}
}

// TestResume_otherPrincipal: others who know the id of an event cannot resume
// its stream, on their own session or on the owner's.
func TestResume_otherPrincipal(t *testing.T) {
	m := newMatrix(t, otherCallerBlocks())
	ada := m.corp.token(nil)
	const call = `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"asks","arguments":{}}}`
	for _, at := range m.sites() {
		hers := m.begin(at, "2025-11-25", ada)
		last := m.lose(at, call, joined(hers, ada))
		for name, credential := range m.otherCallers() {
			own := m.begin(at, "2025-11-25", credential)
			for want, session := range map[int]http.Header{http.StatusBadRequest: own, http.StatusNotFound: hers} {
				got := m.send(at, http.MethodGet, "/mcp", "", joined(session, http.Header{http.CanonicalHeaderKey("Last-Event-ID"): {last}}, credential))
				if got.status != want || strings.Contains(got.text, "elicitation") {
					t.Errorf("%s by %s: %d %s, want %d", name, at.name, got.status, got.text, want)
				}
			}
		}
		if got := m.send(at, http.MethodGet, "/mcp", "", joined(hers, http.Header{http.CanonicalHeaderKey("Last-Event-ID"): {last}}, ada)); !strings.Contains(got.text, "elicitation/create") {
			t.Errorf("by %s: owner: %d %s", at.name, got.status, got.text)
		}
	}
}

// lose makes a call that asks, disconnects, and returns the id of the first
// event, which has no data.
func (m *matrix) lose(at site, call string, header http.Header) (last string) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	response, _ := m.open(ctx, at, http.MethodPost, "/mcp", call, header)
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	last, ok := strings.CutPrefix(strings.TrimSpace(line), "id: ")
	if err != nil || !ok {
		m.t.Fatalf("first event: %q, %v", line, err)
	}
	return last
}

// TestSession_credentialScopes: two credentials of one principal share a
// session and a stream, and each call has only the scopes of its own.
func TestSession_credentialScopes(t *testing.T) {
	m := newMatrix(t, usersOf(0))
	lesser, greater := m.corp.token(nil), m.corp.token(map[string]any{"scope": "admin"})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"admin","arguments":{}}}`
	for _, at := range m.sites() {
		for _, opener := range []http.Header{lesser, greater} {
			session := m.begin(at, "2025-11-25", opener)
			endpoint, next := m.listen(at, opener)
			m.send(at, http.MethodPost, endpoint, initialize, opener)
			next()
			m.send(at, http.MethodPost, endpoint, ready, opener)
			for want, sender := range map[string]http.Header{"POLICY_DENIED": lesser, `"text":"admin"`: greater} {
				if got := m.send(at, http.MethodPost, "/mcp", call, joined(session, sender)).text; !strings.Contains(got, want) {
					t.Errorf("by %s: call on a session: %s, want %s", at.name, got, want)
				}
				m.send(at, http.MethodPost, endpoint, call, sender)
				if got := string(next()); !strings.Contains(got, want) {
					t.Errorf("by %s: call over HTTP+SSE: %s, want %s", at.name, got, want)
				}
			}
		}
	}
}

const echoTool = `
tool "echo" {
  timeout = "1m"
  allow {
    http "site" {
      hosts            = ["%s"]
      private_networks = true
      header "Authorization" { value = "Bearer ${secret.token}" }
    }
  }
  input "fail" { type = bool }
  run = <<JS
    const said = [];
    for (const path of ["/first", "/second"]) {
      said.push((await http.site.get("http://%s" + path)).text());
      log.info(said.join(), { said });
      progress(said.length, null, said.join());
    }
    if (input.fail) throw new ToolError(said.join(), { details: { said } });
    return { said };
  JS
}
`

// syncBuffer is a buffer for concurrent writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestSecrets_changedDuringCall changes a secret during a request with the old
// value; the next request has the new value. The site returns both, and both
// are redacted.
func TestSecrets_changedDuringCall(t *testing.T) {
	const before, after = "correct-horse-battery", "wrong-zebra-capacitor"
	var value atomic.Pointer[string]
	var seen []string
	arrived, proceed := make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.URL.Path == "/first" {
			arrived <- struct{}{}
			<-proceed
		}
		fmt.Fprint(w, "you are "+r.Header.Get("Authorization"))
	}))
	defer site.Close()
	host := strings.TrimPrefix(site.URL, "http://")

	var log syncBuffer
	var notified syncBuffer
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			fmt.Fprintf(&notified, "%s %s %v\n", e.Phase, e.Result, e.Err)
		}},
		Files: engine.Files{
			Tools:      fstest.MapFS{"t.hcl": {Data: fmt.Appendf(nil, echoTool, host, host), Mode: 0o644}},
			Config:     fstest.MapFS{"mcpd.hcl": {Data: []byte(`secret "token" { env = "TOKEN" }`), Mode: 0o644}},
			ConfigPath: "mcpd.hcl",
			LookupEnv:  func(string) (string, bool) { return *value.Load(), true },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	defer func() {
		if err := front.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	change := func(to string) {
		value.Store(&to)
		if _, err := s.Load(t.Context()); err != nil {
			t.Error(err)
		}
	}
	change(before)
	url := listen(t, front)
	for _, fail := range []bool{false, true} {
		change(before)
		go func() {
			<-arrived
			change(after)
			proceed <- struct{}{}
		}()
		meta := strings.Replace(metaModern, `"_meta":{`, `"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug",`, 1)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"fail":%t},%s}}`, fail, meta)
		_, answer := post(t, url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"})
		if n := strings.Count(string(answer), "you are Bearer [secret:token]"); n < 8 {
			t.Errorf("the log messages, progress and outcome contain the redacted secret only %d times:\n%s", n, answer)
		}
		for what, text := range map[string]string{"answer": string(answer), "log": log.String(), "hooks": notified.String()} {
			if strings.Contains(text, "horse") || strings.Contains(text, "zebra") {
				t.Errorf("the %s contains a secret:\n%s", what, text)
			}
		}
	}
	if diff := cmp.Diff([]string{"Bearer " + before, "Bearer " + after, "Bearer " + before, "Bearer " + after}, seen); diff != "" {
		t.Errorf("received by the site (-want +got)\n%s", diff)
	}
}
