package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// deploy posts, elicits, posts, elicits and posts.
const deploy = `
tool "deploy" {
  input "service" { type = string }
  allow {
    http "api" {
      hosts            = ["%s"]
      methods          = ["POST"]
      private_networks = true
    }
    ask { elicit = true }
  }
  timeout = "10s"
  run = <<JS
    const url = "http://%s/";
    const form = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    const post = async (step) => (await http.api.post(url + step)).text();
    const seen = [await post("plan")];
    const first = await elicit("first", { message: "Deploy " + input.service + "?", schema: form });
    seen.push(await post("deploy"), first.content.ok);
    const second = await elicit("second", { message: "Keep it?", schema: form });
    seen.push(await post("finish"), second.content.ok);
    return seen.join(" ");
  JS
}
`

// effects is a server that counts its requests.
type effects struct {
	host string
	n    atomic.Int64
}

func startEffects(t *testing.T) *effects {
	e := &effects{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s#%d", strings.TrimPrefix(r.URL.Path, "/"), e.n.Add(1))
	}))
	t.Cleanup(s.Close)
	e.host = strings.TrimPrefix(s.URL, "http://")
	return e
}

// deployCall returns a call by a client with all input capabilities.
func deployCall(service string, resume *call.Resume) call.Request {
	return call.Request{
		Name: "deploy", Arguments: json.RawMessage(fmt.Sprintf(`{"service":%q}`, service)), Resume: resume,
		Can:    call.Capabilities{Form: true},
		Caller: identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: "a"}, Source: identity.Source{Listener: "local"}},
	}
}

func respond(ask *call.Ask, content string) *call.Resume {
	r := &call.Resume{State: ask.State, Responses: map[string]json.RawMessage{}}
	for _, request := range ask.Requests {
		r.Responses[request.Key] = json.RawMessage(`{"action":"accept","content":` + content + `}`)
	}
	return r
}

func deployServer(t *testing.T, e *effects, statePath string) *engine.Server {
	return server(t, engine.Options{Files: engine.Files{Tools: files("deploy.hcl", fmt.Sprintf(deploy, e.host, e.host))}, StatePath: statePath})
}

func mustAsk(t *testing.T, r call.Result) *call.Ask {
	t.Helper()
	if r.Err != nil || r.Ask == nil {
		t.Fatalf("got %+v, want a question", r)
	}
	return r.Ask
}

const deployed = `"plan#1 deploy#2 true finish#3 false"`

func TestResume_acrossRestart(t *testing.T) {
	e := startEffects(t)
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	s := deployServer(t, e, path)
	first := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = deployServer(t, e, path)
	second := mustAsk(t, s.Execute(t.Context(), deployCall("web", respond(first, `{"ok":true}`))))
	if second.Requests[0].Key != "second" || e.n.Load() != 2 {
		t.Fatalf("asked %+v after %d effects", second.Requests, e.n.Load())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = deployServer(t, e, path)
	last := s.Execute(t.Context(), deployCall("web", respond(second, `{"ok":false}`)))
	if last.Err != nil || string(last.Value) != deployed || e.n.Load() != 3 {
		t.Errorf("got %s, %v after %d effects", last.Value, last.Err, e.n.Load())
	}
	again := s.Execute(t.Context(), deployCall("web", respond(second, `{"ok":true}`)))
	if again.Err != nil || string(again.Value) != deployed || e.n.Load() != 3 {
		t.Errorf("a repeated state: got %s, %v after %d effects", again.Value, again.Err, e.n.Load())
	}
}

func TestResume_concurrentStates(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	for leg := range 2 {
		results := make([]call.Result, 10)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				results[i] = s.Execute(t.Context(), deployCall("web", respond(ask, fmt.Sprintf(`{"ok":%t}`, leg == 0))))
			})
		}
		all.Wait()
		for i, r := range results {
			switch {
			case r.Err != nil:
				t.Fatalf("leg %d, client %d: %v", leg, i, r.Err)
			case leg == 0 && (r.Ask == nil || r.Ask.State != results[0].Ask.State):
				t.Fatalf("client %d got another state", i)
			case leg == 1 && string(r.Value) != deployed:
				t.Fatalf("client %d got %s", i, r.Value)
			}
		}
		ask = results[0].Ask
	}
	if e.n.Load() != 3 {
		t.Errorf("%d effects, want 3", e.n.Load())
	}
}

func TestResume_stateBoundToCall(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	good := respond(ask, `{"ok":true}`)
	refuse := func(what string, r call.Request, want string) {
		t.Helper()
		got := s.Execute(t.Context(), r)
		if got.Err == nil || got.Err.RPC == nil || got.Err.RPC.Code != -32602 || !strings.Contains(got.Err.Message, want) {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	refuse("other arguments", deployCall("db", good), "arguments")
	foreign := deployCall("web", good)
	foreign.Caller.Principal.ID = "eve"
	refuse("another principal", foreign, "another caller")
	for i := range len(ask.State) {
		tampered := []byte(ask.State)
		tampered[i] ^= 1
		bad := *good
		bad.State = string(tampered)
		refuse(fmt.Sprintf("byte %d changed", i), deployCall("web", &bad), "request state")
	}
	if e.n.Load() != 1 {
		t.Errorf("%d effects, want 1", e.n.Load())
	}
}

func TestResume_invalidResponses(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	other := &call.Resume{State: ask.State, Responses: map[string]json.RawMessage{"else": json.RawMessage(`{"action":"accept"}`)}}
	again := mustAsk(t, s.Execute(t.Context(), deployCall("web", other)))
	if again.Requests[0].Key != "first" || again.State != ask.State || again.Wait <= 0 || again.Wait > ask.Wait {
		t.Errorf("asked again: %+v", again)
	}
	wrong := &call.Resume{State: again.State, Responses: map[string]json.RawMessage{"first": json.RawMessage(`12345`)}}
	if r := s.Execute(t.Context(), deployCall("web", wrong)); r.Err == nil || r.Err.RPC == nil {
		t.Errorf("a number as a response: %+v", r)
	}
	unfit := &call.Resume{State: again.State, Responses: map[string]json.RawMessage{"first": json.RawMessage(`{"action":"accept","content":{"ok":"yes"}}`)}}
	if r := s.Execute(t.Context(), deployCall("web", unfit)); r.Err == nil || r.Err.RPC == nil || !strings.Contains(r.Err.Message, "/ok") || strings.Contains(r.Err.Message, "yes") {
		t.Errorf("a response that violates its form: %+v", r)
	}
	declined := &call.Resume{State: again.State, Refused: map[string]call.RPCError{"first": {}}}
	if r := s.Execute(t.Context(), deployCall("web", declined)); r.Err == nil || r.Err.Code != call.ExecutionError || !strings.Contains(r.Err.Message, "declined") {
		t.Errorf("declined: %+v", r)
	}
	if e.n.Load() != 1 {
		t.Errorf("%d effects, want 1", e.n.Load())
	}
}

// The test sends a state without responses, before and after it is used.
func TestResume_incompleteResponses(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	nothing := &call.Resume{State: ask.State}
	before := mustAsk(t, s.Execute(t.Context(), deployCall("web", nothing)))
	mustAsk(t, s.Execute(t.Context(), deployCall("web", respond(ask, `{"ok":true}`))))
	after := mustAsk(t, s.Execute(t.Context(), deployCall("web", nothing)))
	for _, again := range []*call.Ask{before, after} {
		if r := mustAsk(t, s.Execute(t.Context(), deployCall("web", respond(again, `{"ok":true}`)))); r.Requests[0].Key != "second" {
			t.Errorf("got %+v", r)
		}
	}
	if e.n.Load() != 2 {
		t.Errorf("%d effects, want 2", e.n.Load())
	}
}

func TestAsk_missingCapability(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	request := deployCall("web", nil)
	request.Can = call.Capabilities{Sample: true}
	r := s.Execute(t.Context(), request)
	if r.Err == nil || string(r.Err.Required) != `{"elicitation":{}}` {
		t.Errorf("got %+v", r)
	}
}

func TestHook_firesPerLeg(t *testing.T) {
	e := startEffects(t)
	var events, roots []string
	s := server(t, engine.Options{
		Files: engine.Files{Tools: files("deploy.hcl", fmt.Sprintf(deploy, e.host, e.host))},
		Hooks: []engine.Hook{func(_ context.Context, event call.Event) {
			events = append(events, fmt.Sprint(event.Phase, event.Leg, event.Outcome))
			roots = append(roots, event.RootID)
		}},
	})
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	ask = mustAsk(t, s.Execute(t.Context(), deployCall("web", respond(ask, `{"ok":true}`))))
	_ = s.Execute(t.Context(), deployCall("web", respond(ask, `{"ok":true}`)))
	if got, want := strings.Join(events, " "), "start1 end1input_required start0 end2input_required start0 end3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if root := roots[0]; root == "" || !slices.Equal(roots, []string{root, root, "", root, "", root}) {
		t.Errorf("the roots are %q", roots)
	}
}

func TestAsk_responsesInAdvance(t *testing.T) {
	e := startEffects(t)
	s := deployServer(t, e, "")
	yes := json.RawMessage(`{"action":"accept","content":{"ok":true}}`)
	r := s.Execute(t.Context(), deployCall("web", &call.Resume{Responses: map[string]json.RawMessage{"first": yes, "second": yes, "else": yes}}))
	if r.Err != nil || string(r.Value) != `"plan#1 deploy#2 true finish#3 true"` || e.n.Load() != 3 {
		t.Errorf("got %s, %v after %d effects", r.Value, r.Err, e.n.Load())
	}
	if ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", &call.Resume{Responses: map[string]json.RawMessage{"first": yes}}))); ask.Requests[0].Key != "second" {
		t.Errorf("asked for %+v", ask.Requests)
	}
}

func TestSample_defaultMaxTokens(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("sample.hcl", `
tool "a" {
  allow {
    ask {
      sample     = true
      max_tokens = 500
    }
  }
  run = "return await sample({ prompt: 'x' });"
}
`)}})
	request := deployCall("", nil)
	request.Name, request.Arguments, request.Can = "a", nil, call.Capabilities{Sample: true}
	r := s.Execute(t.Context(), request)
	if r.Err == nil || !strings.Contains(r.Err.Message, "1000 by default, is more than the 500") {
		t.Errorf("got %+v", r)
	}
}

func TestTestBlock_mocksInputRequests(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("ask.hcl", `
tool "a" {
  allow {
    ask {
      elicit = true
      roots  = true
    }
  }
  run = <<JS
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const a = await ask({ who: elicit.form({ message: "Who?", schema }), where: roots.list() });
    return [a.who.content.n, a.where[0].uri, (await roots("again")).length].join();
  JS
}
test "all mocks" {
  tool = "a"
  mock "elicit" "who" { json = { n = 3 } }
  mock "roots" "where" { json = [{ uri = "file:///a" }] }
  mock "roots" "again" { json = { roots = [] } }
  expect {
    text  = "3,file:///a,0"
    calls = ["elicit who", "roots where", "roots again"]
  }
}
test "no mocks" {
  tool = "a"
  expect { text = "" }
}
test "an answer that does not fit" {
  tool = "a"
  mock "elicit" "who" { json = { n = "three" } }
  mock "roots" "where" { json = [] }
  expect { error = "INVALID_INPUT" }
}
`)}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		nil,
		{
			"the call failed with EXECUTION_ERROR: no mock responds to an input request of the script",
			"a host call had no mock; add\nmock \"elicit\" \"who\" {\n  json = {}\n}",
			"a host call had no mock; add\nmock \"roots\" \"where\" {\n  json = []\n}",
		},
		nil,
	}
	for i, r := range results {
		if diff := cmp.Diff(want[i], r.Failures); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", r.Name, diff)
		}
		if len(r.Notes) != 0 {
			t.Errorf("%s: %q", r.Name, r.Notes)
		}
	}
}
