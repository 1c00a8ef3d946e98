package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestACallThatIsNotMadeIsWrittenDownOnEveryWire: with who sent it, as one who
// claims nothing, and no body runs.
func TestACallThatIsNotMadeIsWrittenDownOnEveryWire(t *testing.T) {
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
				t.Errorf("%s, %s: %+v, and the caller is told %s", at.name, name, r, answer)
			}
		}
	}
	if strings.Contains(m.log.String(), "a body ran") {
		t.Error("a body ran")
	}
}

// ended is what the log says of a call that has ended.
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
