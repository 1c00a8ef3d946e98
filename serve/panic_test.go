package serve_test

import (
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// TestAPanicInAMethodShowsNoSecret has the clock panic below a method, with a secret
// that a body has read.
func TestAPanicInAMethodShowsNoSecret(t *testing.T) {
	const value = "correct-horse-battery"
	shown := []string{value, base64.StdEncoding.EncodeToString([]byte("key:" + value)), hex.EncodeToString([]byte(value))}
	var log synced
	var broken atomic.Bool
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		LookupEnv: func(string) (string, bool) { return value, true },
		Config:    fstest.MapFS{"mcpd.hcl": {Data: []byte("secret \"key\" {\n  env    = \"KEY\"\n  reveal = true\n}\n"), Mode: 0o644}},
		Tools:     fstest.MapFS{"t.hcl": {Data: []byte("tool \"reads\" {\n  allow {\n    secrets { names = [\"key\"] }\n  }\n  run = \"return secrets.key.length;\"\n}\n"), Mode: 0o644}},
		Now: func() time.Time {
			if broken.Load() {
				panic("the clock holds " + strings.Join(shown, " "))
			}
			return time.Now()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	url := listen(t, frontFor(t, s))
	if answer := ask(t, url, "tools/call", "reads"); !strings.Contains(answer, `"text":"21"`) {
		t.Errorf("got %s", answer)
	}
	broken.Store(true)
	answer := ask(t, url, "tools/list", "")
	broken.Store(false)
	if !strings.Contains(answer, `"message":"internal error"`) {
		t.Errorf("got %s", answer)
	}
	said := log.String()
	if !strings.Contains(said, "panic in an MCP method") || strings.Count(said, "[secret:key]") < len(shown) {
		t.Errorf("the log lacks the panic: %s", said)
	}
	if line := lineWith(said, "panic in an MCP method"); !regexp.MustCompile(` request_id=[0-9a-v]{20,} `).MatchString(line) {
		t.Errorf("the panic names no request: %s", line)
	}
	for _, form := range shown {
		if strings.Contains(said+answer, form) {
			t.Errorf("%s is shown: %s\n%s", form, answer, said)
		}
	}
}

// ask makes a request of 2026-07-28, and returns the answer.
func ask(t *testing.T, url, method, name string) string {
	t.Helper()
	body := strings.NewReplacer("tools/call", method, "chatty", name).Replace(callChatty)
	_, answer := post(t, url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
	return string(answer)
}
