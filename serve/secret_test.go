package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

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

// synced is a buffer that many may write to.
type synced struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestASecretThatChangesUnderACallStaysHidden changes a secret while a request
// that carries the old value is under way; the next one carries the new value.
// The site repeats both, and nobody sees either.
func TestASecretThatChangesUnderACallStaysHidden(t *testing.T) {
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

	var log synced
	var told synced
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			fmt.Fprintf(&told, "%s %s %v\n", e.Phase, e.Result, e.Err)
		}},
		Tools:  fstest.MapFS{"t.hcl": {Data: fmt.Appendf(nil, echoTool, host, host), Mode: 0o644}},
		Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(`secret "token" { env = "TOKEN" }`), Mode: 0o644}}, ConfigPath: "mcpd.hcl",
		LookupEnv: func(string) (string, bool) { return *value.Load(), true },
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
			t.Errorf("the log messages, progress and outcome repeat the site only %d times:\n%s", n, answer)
		}
		for what, text := range map[string]string{"answer": string(answer), "log": log.String(), "hooks": told.String()} {
			if strings.Contains(text, "horse") || strings.Contains(text, "zebra") {
				t.Errorf("the %s holds a secret:\n%s", what, text)
			}
		}
	}
	if diff := cmp.Diff([]string{"Bearer " + before, "Bearer " + after, "Bearer " + before, "Bearer " + after}, seen); diff != "" {
		t.Errorf("the site saw (-want +got)\n%s", diff)
	}
}
