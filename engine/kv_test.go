package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

const counters = `
tool "count" {
  allow {
    kv "own" {}
    kv "ours" { scope = "server" }
    kv "theirs" { scope = "principal" }
    kv "session" { scope = "session" }
  }
  run = <<JS
    const session = await kv.session.incr("n").catch((e) => e.code);
    return [await kv.own.incr("n"), await kv.ours.incr("n"), await kv.theirs.incr("n"), session].join(" ");
  JS
}

prompt "count" {
  allow {
    kv "own" {}
    kv "ours" { scope = "server" }
  }
  run = <<JS
    return [await kv.own.incr("n"), await kv.ours.incr("n")].join(" ");
  JS
}

hook "count" {
  on    = ["end"]
  tools = ["count"]
  allow {
    kv "own" {}
  }
  run = <<JS
    log.info("calls: " + await kv.own.incr("n"));
  JS
}
`

// kvCountCall returns a call of the counting tool by a principal in a session.
func kvCountCall(who, session string) call.Request {
	return call.Request{Name: "count", Caller: identity.Caller{
		Principal: identity.Principal{ID: who, Kind: identity.KindLocal},
		Agent:     identity.Agent{AgentID: "the same"}, Source: identity.Source{Session: session},
	}}
}

func wantValue(t *testing.T, s *engine.Server, r call.Request, want string) {
	t.Helper()
	got := s.Execute(t.Context(), r)
	if got.Err != nil || string(got.Value) != want {
		t.Errorf("%s in %q gets %s, %v; want %s", r.Caller.Principal.ID, r.Caller.Source.Session, got.Value, got.Err, want)
	}
}

func TestKV_scopes(t *testing.T) {
	log := &logBuffer{}
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	start := func() *engine.Server {
		return server(t, engine.Options{Files: engine.Files{Tools: files("count.hcl", counters)}, StatePath: path, Logger: log.logger()})
	}
	s := start()
	wantValue(t, s, kvCountCall("ada", "1"), `"1 1 1 1"`)
	wantValue(t, s, kvCountCall("ada", "2"), `"2 2 2 1"`)
	wantValue(t, s, kvCountCall("bob", "3"), `"3 3 1 1"`)
	wantValue(t, s, kvCountCall("bob", ""), `"4 4 2 INVALID"`)
	prompt := s.Execute(t.Context(), call.Request{Kind: call.Prompts, Name: "count", Caller: kvCountCall("ada", "").Caller})
	if want := `"text":"1 5"`; prompt.Err != nil || !strings.Contains(string(prompt.Reply), want) {
		t.Errorf("the prompt of the same name gets %s, %v; want %s", prompt.Reply, prompt.Err, want)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "calls: 4"; !strings.Contains(log.String(), want) {
		t.Errorf("the hook has not counted: %s", log.String())
	}
	wantValue(t, start(), kvCountCall("ada", "1"), `"5 6 3 2"`)
}

func TestKV_concurrentIncr(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("count.hcl", counters)}})
	const together = 20
	var all sync.WaitGroup
	for range together {
		all.Go(func() { s.Execute(t.Context(), kvCountCall("ada", "1")) })
	}
	all.Wait()
	n := together + 1
	wantValue(t, s, kvCountCall("ada", "1"), fmt.Sprintf(`"%d %d %d %d"`, n, n, n, n))
}

const pausing = `
tool "deploy" {
  input "service" { type = string }
  allow {
    kv "log" {}
    ask { elicit = true }
  }
  run = <<JS
    const n = await kv.log.incr("runs");
    await kv.log.put("run " + n, input.service);
    await elicit("first", { message: "Go on?", schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    return [n, await kv.log.incr("runs"), await kv.log.list()];
  JS
}
`

// The second leg runs the script from the start.
func TestKV_resume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	o := engine.Options{Files: engine.Files{Tools: files("deploy.hcl", pausing)}, StatePath: path}
	s := server(t, o)
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = server(t, o)
	for range 2 {
		last := s.Execute(t.Context(), deployCall("web", respond(ask, `{"ok":true}`)))
		if want := `[1,2,["run 1","runs"]]`; last.Err != nil || string(last.Value) != want {
			t.Errorf("got %s, %v; want %s", last.Value, last.Err, want)
		}
	}
}

const testedNotes = `
tool "notes" {
  allow {
    kv "notes" { scope = "session" }
  }
  run = <<JS
    const keys = await kv.notes.list();
    await kv.notes.put("later", 1);
    return keys.join();
  JS
}
test "no notes" {
  tool = "notes"
  expect { text = "" }
}
test "notes that there are" {
  tool = "notes"
  mock "kv.notes" "b" { json = 1 }
  mock "kv.notes" "a" { json = 2 }
  expect {
    text  = "a,b"
    calls = []
  }
}
test "no notes again" {
  tool = "notes"
  expect { text = "" }
}
`

func TestKV_testBlocks(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("notes.hcl", testedNotes)}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	for _, r := range results {
		if !r.Passed() || len(r.Notes) > 0 {
			t.Errorf("%s: %q, %q", r.Name, r.Failures, r.Notes)
		}
	}
	if got := s.Execute(t.Context(), call.Request{Name: "notes", Caller: kvCountCall("ada", "test").Caller}); got.Err != nil || string(got.Value) != `""` {
		t.Errorf("a call finds a value of a test: %s, %v", got.Value, got.Err)
	}
}
