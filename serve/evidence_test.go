package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// mayDiffer are the members of hook events, audit records and spans that may
// differ between two transports with the same call. All other members are
// compared.
var mayDiffer = map[string]string{
	"time": "when", "duration_ms": "how long it took",
	"seq": "the chain of the log", "prev": "the chain of the log", "mac": "the chain of the log",
	"listener": "where the call came in", "client.address": "where the call came in", "mcp.session.id": "the session, which modern calls and REST have not",
	"request_id": "each HTTP request, and each leg of a modern call, is a request of its own", "mcpd.request.id": "as request_id",
}

// areIDs are members with values that are generated for each call, or with a
// key of the log. Only their equality is compared.
var areIDs = []string{"call_id", "root_id", "parent_id", "trace_id", "span_id", "digest", "asked"}

// evidence collects the hook events, audit records and spans of a server.
type evidence struct {
	t       *testing.T
	server  *engine.Server
	front   *serve.Front
	path    string // of the audit log
	console syncBuffer

	mu      sync.Mutex
	events  []string
	changed chan bool         // closed and replaced at each event
	names   map[string]string // of ids in events
}

// newEvidence returns a server of a tool file that records everything.
func newEvidence(t *testing.T, tools string) *evidence {
	t.Helper()
	v := &evidence{t: t, path: filepath.Join(t.TempDir(), "audit.jsonl"), changed: make(chan bool), names: map[string]string{}}
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Hooks: []engine.Hook{v.hook},
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{Console: &v.console})},
		Files: engine.Files{
			LookupEnv:  func(name string) (string, bool) { return "console", name == "OTEL_TRACES_EXPORTER" },
			Tools:      fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}},
			Config:     fstest.MapFS{"mcpd.hcl": {Data: []byte("audit {\n  path    = \"audit.jsonl\"\n  capture = [\"*\"]\n}\n"), Mode: 0o644}},
			ConfigPath: filepath.Join(filepath.Dir(v.path), "mcpd.hcl"),
		},
		// The files and their revision are the same for all transports.
	})
	if err != nil {
		t.Fatal(err)
	}
	v.server = s
	return v
}

// serve loads the files and serves them.
func (v *evidence) serve() *serve.Front {
	v.t.Helper()
	if _, err := v.server.Load(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	v.front = serve.New(v.server, serve.Options{})
	v.t.Cleanup(func() { v.close() })
	return v.front
}

// close ends the server, which writes the last records and spans.
func (v *evidence) close() {
	if err := v.front.Shutdown(context.Background()); err != nil {
		v.t.Errorf("shut down: %v", err)
	}
}

func (v *evidence) hook(_ context.Context, e call.Event) {
	encoded, err := json.Marshal(e)
	if err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = append(v.events, normal(v.t, encoded, v.names))
	close(v.changed)
	v.changed = make(chan bool)
}

// take returns the events since the last call.
func (v *evidence) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	events := v.events
	v.events = nil
	return events
}

// records returns the outcomes in the audit log of a closed server.
func (v *evidence) records() (all []string) {
	text, err := os.ReadFile(v.path)
	if err != nil {
		v.t.Fatal(err)
	}
	names := map[string]string{}
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"kind":"outcome"`)) {
			all = append(all, normal(v.t, line, names))
		}
	}
	return all
}

// spans returns the spans of a closed server with their attributes and the
// names of their ancestors, in alphabetical order.
func (v *evidence) spans() (all []string) {
	type span struct { // format of OpenTelemetry's console exporter
		Name                string
		SpanContext, Parent struct{ SpanID string }
		SpanKind            int
		Status              any
		Attributes          []struct {
			Key   string
			Value struct{ Value any }
		}
	}
	var spans []span
	byID := map[string]span{}
	for lines := json.NewDecoder(strings.NewReader(v.console.String())); lines.More(); {
		var s span
		if err := lines.Decode(&s); err != nil {
			v.t.Fatal(err)
		}
		spans, byID[s.SpanContext.SpanID] = append(spans, s), s
	}
	for _, s := range spans {
		path := s.Name
		for up, ok := byID[s.Parent.SpanID]; ok; up, ok = byID[up.Parent.SpanID] {
			path = up.Name + " > " + path
		}
		notified := map[string]any{}
		for _, a := range s.Attributes {
			notified[a.Key] = a.Value.Value
		}
		attributes, err := json.Marshal(cleaned(notified, map[string]string{}))
		if err != nil {
			v.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %v %v %s", path, s.SpanKind, s.Status, attributes))
	}
	slices.Sort(all)
	return all
}

// normal returns a JSON object without the members that may differ, with sorted
// members, and with ids numbered in order of appearance.
func normal(t *testing.T, text []byte, names map[string]string) string {
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Errorf("%v in %s", err, text)
	}
	encoded, err := json.Marshal(cleaned(value, names))
	if err != nil {
		t.Error(err)
	}
	return string(encoded)
}

func cleaned(value any, names map[string]string) any {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedNames(value) {
			id, isText := value[name].(string)
			switch {
			case mayDiffer[name] != "":
				delete(value, name)
			case isText && id != "" && (slices.Contains(areIDs, name) || strings.HasSuffix(name, ".call.id")):
				if names[id] == "" {
					names[id] = fmt.Sprintf("id %d", len(names)+1)
				}
				value[name] = names[id]
			default:
				value[name] = cleaned(value[name], names)
			}
		}
	case []any:
		for i := range value {
			value[i] = cleaned(value[i], names)
		}
	}
	return value
}

func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestDeclinedCall_audited: the record has the sender without a claim, and no
// script runs.
func TestDeclinedCall_audited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	m := newMatrixOf(t, usersOf(0)+fmt.Sprintf("audit {\n  path = %q\n  mode = \"strict\"\n}\n", path), identity.Anonymous())
	const bad = `{"agent_id":7}`
	meta := strings.Replace(metaMatrix, `"_meta":{`, `"_meta":{"mcpd/agent":`+bad+`,`, 1)
	open := mcptest.Request{Method: "tools/call", Name: "open", Params: `"name":"open","arguments":{}`}
	two := http.Header{"X-Agent-Id": {"a", "b"}}
	for _, at := range m.sites() {
		credential := m.corp.token(nil)
		session := m.begin(at, "2025-11-25", credential)
		write, read := m.dial(at, credential)
		post := func(path, body string, header http.Header) func() string {
			return func() string { return m.send(at, http.MethodPost, path, body, joined(credential, header)).text }
		}
		for name, send := range map[string]func() string{
			"REST, headers":         post("/mcp/execute", `{"tool":"open","arguments":{}}`, two),
			"REST, body":            post("/mcp/execute", `{"tool":"open","arguments":{},"agent":`+bad+`}`, nil),
			"modern HTTP, headers":  post("/mcp", messageOf(1, open, metaMatrix), joined(modernHeaders(open), two)),
			"modern HTTP, _meta":    post("/mcp", messageOf(1, open, meta), modernHeaders(open)),
			"legacy HTTP, _meta":    post("/mcp", messageOf(1, open, `"_meta":{"mcpd/agent":`+bad+`}`), session),
			"WebSocket, _meta":      func() string { return pipe(write, read)(mcptest.Request{}, 1, messageOf(1, open, meta)) },
			"REST, a task required": post("/mcp/execute", `{"tool":"long","arguments":{}}`, nil),
		} {
			before := len(endings(t, path))
			answer := send()
			got := endings(t, path)[before:]
			if len(got) != 1 {
				t.Errorf("%s, %s: %d records of %s", at.name, name, len(got), answer)
				continue
			}
			if r := got[0]; r.Principal.ID != "ada" || r.Agent.Claimed.ID != "anonymous" && r.Agent.Claimed.ID != "t/1" || !r.Declined || !strings.Contains(answer, r.Outcome) {
				t.Errorf("%s, %s: %+v, response %s", at.name, name, r, answer)
			}
		}
	}
	if strings.Contains(m.log.String(), "a script ran") {
		t.Error("a script ran")
	}
}

// ended is the record of an ended call.
type ended struct {
	Kind, Outcome string
	Declined      bool
	Principal     struct{ ID string }
	Agent         struct {
		Claimed struct {
			ID string `json:"agent_id"`
		}
	}
}

func endings(t *testing.T, path string) (all []ended) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one ended
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if one.Kind == "outcome" {
			all = append(all, one)
		}
	}
	return all
}
