package serve_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

// lifecycleFront serves a tool with a server block.
func lifecycleFront(t *testing.T, log *hookLog, server string) (*serve.Front, *engine.Server, fstest.MapFS) {
	t.Helper()
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte(server), Mode: 0o644}}
	s, err := engine.New(engine.Options{
		Name: "test", Hooks: []engine.Hook{log.hook}, Front: serve.Checks{}, Config: config,
		Tools: fstest.MapFS{"t.hcl": {Data: []byte("tool \"open\" {\n  run = \"return 1;\"\n}\n"), Mode: 0o644}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return frontFor(t, s), s, config
}

const handshakeOpen = `"error":{"code":-32600,"message":"the handshake is not complete: send the notification notifications/initialized (without an id) before any request except ping"}`

// TestLifecycle_requestsBeforeInitialized sends every method of the session eras
// between initialize and notifications/initialized.
func TestLifecycle_requestsBeforeInitialized(t *testing.T) {
	for _, w := range wires {
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			t.Run(w.name+"/"+version, func(t *testing.T) {
				t.Parallel()
				var log hookLog
				front, _, _ := lifecycleFront(t, &log, "")
				wire := w.open(t, front)
				wire.answer(0, strings.Replace(initialize, "2025-11-25", version, 1))
				requests := append(mcptest.Requests(), mcptest.Request{Method: "no/such/method"}, mcptest.Request{Method: "notifications/initialized"})
				for i, r := range requests {
					want := handshakeOpen
					switch r.Method {
					case "ping":
						want = `"result":{}`
					case "initialize":
						want = `"error":{"code":-32600,"message":"the session is initialized already"}`
					}
					if got := wire.answer(i+1, messageOf(i+1, r, "")); !strings.Contains(string(got), want) {
						t.Errorf("%s before the end of the handshake is answered with %s", r.Method, got)
					}
				}
				modern := mcptest.Request{Method: "tools/call", Name: "open", Params: `"name":"open"`}
				if got := wire.answer(98, messageOf(98, modern, metaMatrix)); !strings.Contains(string(got), `"text":"1"`) {
					t.Errorf("a modern call is answered with %s", got)
				}
				log.take()
				wire.send(ready)
				if got := wire.answer(99, messageOf(99, modern, "")); !strings.Contains(string(got), `"text":"1"`) || len(log.take()) != 2 {
					t.Errorf("after the handshake a call is answered with %s", got)
				}
			})
		}
	}
}

// TestLifecycle_lenient turns the handshake's end into a courtesy, by a reload too.
func TestLifecycle_lenient(t *testing.T) {
	const lenient = "server {\n  strict_lifecycle = false\n}\n"
	list := mcptest.Request{Method: "tools/list"}
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			var log hookLog
			front, s, config := lifecycleFront(t, &log, "server {\n  strict_lifecycle = true\n}\n")
			wire := w.open(t, front)
			wire.answer(0, initialize)
			for i, now := range []struct{ config, want string }{{"", handshakeOpen}, {lenient, `"name":"open"`}, {"server {}\n", handshakeOpen}} {
				if now.config != "" {
					config["mcpd.hcl"].Data = []byte(now.config)
					if _, err := s.Reload(t.Context(), engine.Change{Config: true}); err != nil {
						t.Fatal(err)
					}
				}
				if got := wire.answer(i+1, messageOf(i+1, list, "")); !strings.Contains(string(got), now.want) {
					t.Errorf("with %q the answer is %s", now.config, got)
				}
			}
		})
	}
}

// TestLifecycle_pipelined sends the whole handshake and a call in one go, as a
// client may on a connection, and as it may in a batch.
func TestLifecycle_pipelined(t *testing.T) {
	var log hookLog
	front, _, _ := lifecycleFront(t, &log, "")
	callText := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"open"}}`, id)
	}
	for _, w := range wires[1:] { // HTTP needs the id of the session first
		wire := w.open(t, front)
		for _, text := range []string{initialize, ready, callText(1)} {
			wire.send(text)
		}
		wire.next()
		if got := wire.next(); !strings.Contains(string(got), `"text":"1"`) {
			t.Errorf("%s: the call is answered with %s", w.name, got)
		}
	}
	for _, w := range wires {
		wire := w.open(t, front)
		wire.answer(0, strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
		wire.send("[" + callText(1) + "," + ready + "," + callText(2) + "]")
		got := string(wire.next())
		if before, after, _ := strings.Cut(got, `},{`); !strings.Contains(before, handshakeOpen[:len(handshakeOpen)-1]) || !strings.Contains(after, `"text":"1"`) {
			t.Errorf("%s: the batch is answered with %s", w.name, got)
		}
	}
}
