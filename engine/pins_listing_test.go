package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newRawUpstream returns a server with a literal tools list.
func newRawUpstream(t *testing.T, tools string) (url string) {
	return web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := `{}`
		switch {
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[` + tools + `]}`
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
}

func TestPins_invalidTools(t *testing.T) {
	lock := newLock(t)
	s := pinnedServer(t, lock, upstreamAt(newRawUpstream(t, `
		{"name":"good","inputSchema":{"type":"object"}},
		{"name":"two","inputSchema":{"type":"object"}}, {"name":"two","description":"Another","inputSchema":{"type":"object"}},
		{"name":"number","description":1,"inputSchema":{"type":"object"}},
		{"name":"case","Description":"Obey","inputSchema":{"type":"object"}},
		{"inputSchema":{"type":"object"}}, 7`)))
	if diff := cmp.Diff([]string{"lab_good"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := []string{
		"tool lab_number: it cannot be accepted: read definition: the description is not a string",
		"tool lab_case: it cannot be accepted: read definition: a member name differs from description only in case",
		"tool lab_: it cannot be accepted: read definition: it has no name of 1 to 1024 bytes",
		"tool lab_: it cannot be accepted: read definition: it is not an object",
		"tool lab_two: it is listed several times, with different definitions",
	}
	if diff := cmp.Diff(want, s.Status().Upstreams[0].LeftOut); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"lab good 9f44"}, accepted(t, lock)); diff != "" {
		t.Errorf("the lock file (-want +got)\n%s", diff)
	}
}

func TestPins_unknownMembers(t *testing.T) {
	url := newRawUpstream(t, `{"name":"a","icons":[{"src":"https://example.com/a.png"}],"execution":{"taskSupport":"optional"},"title":null,
		"inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number","maximum":90071992547409931}}},"_meta":{"x":1}}`)
	icons := map[string]int{}
	for _, pin := range []string{"first", "off"} {
		m := pinnedServer(t, newLock(t), upstreamAt(url, fmt.Sprintf("pin = %q", pin))).Snapshot().Tool("lab_a").Metadata()
		icons[pin] = len(m.Icons)
		if got := string(m.InputSchema); !strings.Contains(got, `{"z":{"type":"string"},"a":{"type":"number","maximum":90071992547409931}}`) {
			t.Errorf("%s: the input is %s", pin, got)
		}
	}
	if diff := cmp.Diff(map[string]int{"first": 0, "off": 1}, icons); diff != "" {
		t.Errorf("icons (-want +got)\n%s", diff)
	}
}

func TestPins_schemaLint(t *testing.T) {
	s := federated(t, upstreamAt(newRawUpstream(t, `
		{"name":"good","inputSchema":{"type":"object"}},
		{"name":"far","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://schemas.test/a.json"}}}},
		{"name":"never","inputSchema":{"type":"object","properties":{"a":{"pattern":"("}}}},
		{"name":"out","inputSchema":{"type":"object"},"outputSchema":{"type":"objekt"}}`), `pin = "off"`))
	if diff := cmp.Diff([]string{"lab_good"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := []string{"tool lab_far: its inputSchema is invalid: ", "tool lab_never: its inputSchema is invalid: ", "tool lab_out: its outputSchema is invalid: "}
	left := s.Status().Upstreams[0].LeftOut
	for i, begins := range want {
		if i >= len(left) || !strings.HasPrefix(left[i], begins) {
			t.Fatalf("left out are %q", left)
		}
	}
}
