package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// stuckTools call the host when they run, and then do not end: one waits for
// the host, one for a timer, and one computes.
const stuckTools = `
tool "waits" {
  timeout = "5m"
  allow {
    http "host" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    return (await http.host.post("http://%[1]s/hang")).text();
  JS
}
tool "sleeps" {
  timeout = "5m"
  allow {
    http "host" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await http.host.post("http://%[1]s/");
    await new Promise(done => setTimeout(done, 300_000));
  JS
}
tool "computes" {
  timeout = "5m"
  allow {
    http "host" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await http.host.post("http://%[1]s/");
    for (;;) {}
  JS
}
`

// stuck is a site with the stuck tools, and the state of their calls.
type stuck struct {
	*site
	runs  chan struct{}   // a script runs
	left  chan struct{}   // a script has stopped waiting for the host
	ended chan call.Event // a call has ended
}

func serveStuck(t *testing.T) *stuck {
	s := &stuck{runs: make(chan struct{}, 1), left: make(chan struct{}, 1), ended: make(chan call.Event, 1)}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs <- struct{}{}
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			s.left <- struct{}{}
		}
	}))
	t.Cleanup(host.Close)
	s.site = open(t, engine.Options{
		Name: "test", Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: fmt.Appendf(nil, stuckTools, strings.TrimPrefix(host.URL, "http://")), Mode: 0o644}}},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			if e.Phase != call.Start {
				s.ended <- e
			}
		}},
	})
	return s
}

// cancelWay is one way to cancel a call.
type cancelWay struct {
	name string
	on   func(line) bool
	run  func(v *visit, s *stuck, tool string)
}

// On stdio, a lost connection cannot be distinguished from the end of the
// input; see TestCancel_stdioGracePeriod.
var cancelWays = []cancelWay{
	{"go-sdk cancels", func(line) bool { return true }, clientCancels},
	{"notification", func(l line) bool { return l.name != "Streamable HTTP" || l.era == legacy }, notifies},
	{"stream closed", func(l line) bool { return l.name == "Streamable HTTP" }, closesStream},
	{"connection lost", func(l line) bool { return l.name != "stdio" }, hangsUp},
	{"session ended", func(l line) bool { return l.name == "Streamable HTTP" && l.era == legacy }, endsSession},
}

// TestCancel_stopsScript cancels calls of scripts that do not end by
// themselves, in each way on each transport. A stopped script is detected by
// its hook, which runs when no part of the script runs, and by the host that it
// waited for.
func TestCancel_stopsScript(t *testing.T) {
	for _, l := range lines {
		s := serveStuck(t)
		for _, way := range cancelWays {
			if !way.on(l) {
				continue
			}
			for _, tool := range []string{"waits", "sleeps", "computes"} {
				t.Run(l.name+" "+string(l.era)+"/"+way.name+"/"+tool, func(t *testing.T) {
					v := arrive(t, &copies{site: s.site}, l)
					way.run(v, s, tool)
					if e := one(v, s.ended); e.Phase != call.Failed || e.Tool != tool {
						t.Errorf("%s ended with %s", e.Tool, e.Phase)
					}
					if tool == "waits" {
						one(v, s.left)
					}
				})
			}
		}
	}
}

func clientCancels(v *visit, s *stuck, tool string) {
	session := v.session(nil)
	ctx, cancel := context.WithCancel(v.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
		ended <- err
	}()
	one(v, s.runs)
	cancel()
	if err := one(v, ended); err == nil {
		v.Error("the call has a result")
	}
}

// begin starts a call, and returns when its script runs.
func begin(v *visit, c *conn, s *stuck, tool string) (id int) {
	v.Helper()
	id = c.start("tools/call", object{"name": tool, "arguments": object{}})
	one(v, s.runs)
	return id
}

// notifies checks that the next request gets a response, and the cancelled one
// does not.
func notifies(v *visit, s *stuck, tool string) {
	c := v.connect()
	id := begin(v, c, s, tool)
	c.notify("notifications/cancelled", object{"requestId": id, "reason": "of no use any more"})
	s.ended <- one(v, s.ended)
	c.get("tools/list", nil)
	if m, answered := c.answers[id]; answered {
		v.Errorf("response to the cancelled call: %s %v", m.Result, m.Error)
	}
}

func closesStream(v *visit, s *stuck, tool string) {
	c := v.connect()
	c.drop(fmt.Sprint(begin(v, c, s, tool)))
}

func hangsUp(v *visit, s *stuck, tool string) {
	c := v.connect()
	begin(v, c, s, tool)
	c.hang()
}

func endsSession(v *visit, s *stuck, tool string) {
	c := v.connect()
	begin(v, c, s, tool)
	if err := c.end(); err != nil {
		v.Error(err)
	}
}

// TestCancel_stdioGracePeriod: the client may be gone, or wait for the response
// to its last message.
func TestCancel_stdioGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan call.Event, 1)
		e, err := engine.New(engine.Options{
			Name: "test", Front: serve.Checks{},
			Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(`
tool "sleeps" {
  timeout = "5m"
  run = <<JS
    await new Promise(done => setTimeout(done, 300_000));
  JS
}
`)}}},
			Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
				if e.Phase != call.Start {
					ended <- e
				}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		front := serve.New(e, serve.Options{Grace: time.Minute})
		started := time.Now()
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleeps","_meta":{%q:%q,%q:{}}}}`,
			metaVersion, modern, metaCapabilities)
		if err := front.Stdio(t.Context(), strings.NewReader(text), io.Discard); err == nil {
			t.Error("no error for the cancelled call")
		}
		if e := <-ended; e.Phase != call.Failed || time.Since(started) != time.Minute+time.Millisecond {
			t.Errorf("after %s the call ended with %s", time.Since(started), e.Phase)
		}
		if err := front.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
