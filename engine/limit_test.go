package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// manualClock is a manual clock. It is safe for concurrent use.
type manualClock struct{ passed atomic.Int64 }

func (h *manualClock) now() time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(h.passed.Load()))
}

func (h *manualClock) advance(d time.Duration) { h.passed.Add(int64(d)) }

// callBy returns a call by a principal.
func callBy(id, tool, arguments string) call.Request {
	who := identity.Anonymous()
	who.ID = id
	return call.Request{Name: tool, Arguments: json.RawMessage(arguments), Caller: identity.Caller{Principal: who}}
}

// outcomeCode returns the outcome of a call: its code and message, or "ok".
func outcomeCode(r call.Result) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return "ok"
}

const echo = `
tool "echo" {
  timeout = "1m"
  input "n" {
    type     = integer
    required = true
  }
  run = "return input.n"
}
policy "no_seven" {
  deny   = "args.n == 7"
  reason = "not seven"
}
`

const perCaller = `
limit "per_caller" {
  key   = "principal.id"
  rate  = "60/m"
  burst = 2
}
`

const tooMany = "POLICY_DENIED: over the limit of 60 calls a minute; try again in 1 s"

func TestLimit_deniedCall(t *testing.T) {
	clock := &manualClock{}
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:  files("t.hcl", echo),
			Config: files("mcpd.hcl", perCaller+"policy \"no_eight\" {\n  tools = [\"echo\"]\n  deny = \"args.n == 8\"\n  reason = \"not eight\"\n}\n"),
		},
		Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			if fmt.Sprint(in.Args["n"]) == "9" {
				return engine.Deny("not nine")
			}
			return engine.Allow()
		}},
		Now: clock.now,
	})
	var got []string
	for _, n := range []string{"7", "8", "9", `"x"`, "1", "2", "3", "7"} {
		got = append(got, n+" "+outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":`+n+`}`))))
	}
	want := []string{
		"7 POLICY_DENIED: not seven", "8 POLICY_DENIED: not eight", "9 POLICY_DENIED: not nine",
		`"x" INVALID_INPUT: the arguments do not fit the tool's input schema: /n must be an integer, not a string`,
		"1 ok", "2 ok", "3 " + tooMany, "7 POLICY_DENIED: not seven",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLimit_retryAfter(t *testing.T) {
	clock := &manualClock{}
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", perCaller)}, Now: clock.now})
	call := func(id string) call.Result { return s.Execute(t.Context(), callBy(id, "echo", `{"n":1}`)) }
	call("ada")
	call("ada")
	r := call("ada")
	if outcomeCode(r) != tooMany || !r.Err.Limited || r.Err.RetryAfter != time.Second || r.Err.Overloaded {
		t.Fatalf("the call over the limit: %+v", r.Err)
	}
	if got := outcomeCode(call("bob")); got != "ok" {
		t.Errorf("another caller: %s", got)
	}
	clock.advance(r.Err.RetryAfter)
	if got := outcomeCode(call("ada")); got != "ok" {
		t.Errorf("after the wait: %s", got)
	}
	if got := outcomeCode(call("ada")); got != tooMany {
		t.Errorf("a second call: %s", got)
	}
	if got := s.Status().Limits; got != 1 {
		t.Errorf("the status counts %d limits", got)
	}
}

func TestLimit_allKinds(t *testing.T) {
	plan := call.Request{Kind: call.Prompts, Name: "plan", Arguments: json.RawMessage(`{"day":"monday"}`)}
	completes := call.Request{Kind: call.Prompts, Name: "plan", Argument: "day", Arguments: json.RawMessage(`{"value":"m","params":{}}`)}
	note := call.Request{Kind: call.Resources, Name: "note://n/17"}
	numbers := call.Request{Kind: call.Templates, Name: "note://n/{id}", Argument: "id", Arguments: json.RawMessage(`{"value":"1","params":{}}`)}
	file := call.Request{Kind: call.Resources, Name: "docs://h/a.md"}
	for _, c := range []struct {
		name, limit   string
		first, second call.Request
		want          string
	}{
		{"a prompt and its completion", `prompts = ["plan"]`, plan, completes, "denied"},
		{"a completion and its prompt", `prompts = ["plan"]`, completes, plan, "denied"},
		{"a template and its completion", `resources = ["note"]`, note, numbers, "denied"},
		{"completions of a template", `resources = ["*"]`, numbers, numbers, "denied"},
		{"files of a folder", `resources = ["docs"]`, file, file, "denied"},
		{"a prompt and a resource", `prompts = ["*"]`, plan, note, "ok"},
		{"by an argument", "prompts = [\"plan\"]\nkey = \"args.day\"", plan, completes, "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(t, engine.Options{
				Files: engine.Files{
					Tools:  files("library.hcl", library, "docs/a.md", "# A"),
					Config: files("mcpd.hcl", "limit \"l\" {\nrate = \"1/h\"\n"+c.limit+"\n}\n"),
				},
			})
			if got := outcomeCode(s.Execute(t.Context(), c.first)); got != "ok" {
				t.Fatal(got)
			}
			got := outcomeCode(s.Execute(t.Context(), c.second))
			if strings.HasPrefix(got, "POLICY_DENIED: over the limit of 1 call an hour") {
				got = "denied"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLimit_reload(t *testing.T) {
	for _, c := range []struct{ name, next, want string }{
		{"of another tool", perCaller + "limit \"other\" { rate = \"1000/s\" }\n", tooMany},
		{"of its burst", strings.Replace(perCaller, "burst = 2", "burst = 1", 1), strings.Replace(tooMany, "1 s", "2 s", 1)},
		{"that fails", perCaller + "limit \"broken\" {}\n", tooMany},
		{"of its rate", strings.Replace(perCaller, "60/m", "61/m", 1), "ok"},
		{"of its name", strings.Replace(perCaller, "per_caller", "by_caller", 1), "ok"},
		{"of its file", "# moved\n", "ok"},
	} {
		t.Run("a reload "+c.name, func(t *testing.T) {
			clock, config, tools := &manualClock{}, files("mcpd.hcl", perCaller), files("t.hcl", echo)
			s := server(t, engine.Options{Files: engine.Files{Tools: tools, Config: config}, Now: clock.now})
			for range 2 {
				if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got != "ok" {
					t.Fatal(got)
				}
			}
			config["mcpd.hcl"].Data = []byte(c.next)
			if c.next == "# moved\n" {
				tools["limits.hcl"] = files("limits.hcl", perCaller)["limits.hcl"]
			}
			_, _ = s.Load(t.Context())
			if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got != c.want {
				t.Errorf("the third call: %s, want %s", got, c.want)
			}
		})
	}
}

func TestLimit_operatorFirst(t *testing.T) {
	tools := files("t.hcl", echo)
	s := server(t, engine.Options{Files: engine.Files{Tools: tools, Config: files("mcpd.hcl", perCaller)}, Now: (&manualClock{}).now})
	tools["l.hcl"] = files("l.hcl", `limit "per_caller" { rate = "1000/s" }`)["l.hcl"]
	if _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), `limit "per_caller" is defined twice`) {
		t.Errorf("a tool file takes the name of the operator's limit: %v", err)
	}
	tools["l.hcl"].Data = []byte(`limit "generous" { rate = "1000/s" }`)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		got = append(got, outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))))
	}
	if diff := cmp.Diff([]string{"ok", "ok", tooMany}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLimit_keyError(t *testing.T) {
	var log strings.Builder
	s := server(t, engine.Options{
		Files:  engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", "limit \"l\" {\n  key = \"principal.claims.tenant\"\n  rate = \"1/s\"\n}\n")},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))); got != "POLICY_DENIED: denied by policy" {
		t.Errorf("the caller gets %s", got)
	}
	if want := `limit \"l\": mcpd.hcl:2:27: \"tenant\" is absent`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, log.String())
	}
}

func TestLimit_ratePerCall(t *testing.T) {
	e := startEffects(t)
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:  files("deploy.hcl", fmt.Sprintf(deploy, e.host, e.host)),
			Config: files("mcpd.hcl", "limit \"l\" {\n  rate = \"1/h\"\n  concurrency = 1\n}\n"),
		},
	})
	first := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	if got := outcomeCode(s.Execute(t.Context(), deployCall("web", nil))); !strings.HasPrefix(got, "POLICY_DENIED: over the limit of 1 call") {
		t.Errorf("a second call: %s", got)
	}
	second := mustAsk(t, s.Execute(t.Context(), deployCall("web", respond(first, `{"ok":true}`))))
	if last := s.Execute(t.Context(), deployCall("web", respond(second, `{"ok":false}`))); last.Err != nil || string(last.Value) != deployed {
		t.Errorf("the last leg: %s, %v", last.Value, last.Err)
	}
	forged := deployCall("web", &call.Resume{State: "none"})
	if got := outcomeCode(s.Execute(t.Context(), forged)); !strings.HasPrefix(got, "INVALID_INPUT") {
		t.Errorf("an invalid state bypasses the limit: %s", got)
	}
}

func TestLimit_testBlocks(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:  files("t.hcl", echo+"test \"one\" {\n  tool = \"echo\"\n  input = { n = 1 }\n  expect { output = 1 }\n}\n"),
			Config: files("mcpd.hcl", "limit \"l\" {\n  key = \"principal.claims.tenant\"\n  rate = \"1/h\"\n}\nlimit \"m\" { rate = \"1/h\" }\n"),
		},
	})
	for range 3 {
		results, err := s.RunTests(t.Context(), nil)
		if err != nil || len(results) != 1 || !results[0].Passed() {
			t.Fatalf("%+v, %v", results, err)
		}
	}
	request := callBy("ada", "echo", `{"n":1}`)
	request.Caller.Principal.Claims = map[string]any{"tenant": "acme"}
	if got := outcomeCode(s.Execute(t.Context(), request)); got != "ok" {
		t.Errorf("tests were counted: %s", got)
	}
}

func TestLimit_listed(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", "limit \"l\" { rate = \"1/h\" }\n")}})
	request := callBy("ada", "echo", `{"n":1}`)
	before := s.Visible(t.Context(), call.Tools, request.Caller)
	s.Execute(t.Context(), request)
	after := s.Visible(t.Context(), call.Tools, request.Caller)
	if len(after.Tools) != 1 || before.Hash != after.Hash {
		t.Errorf("after reaching the limit, the list has %d tools", len(after.Tools))
	}
}

func TestLimit_concurrencyPerKey(t *testing.T) {
	type none struct{}
	s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "limit \"l\" {\n  key = \"principal.id\"\n  concurrency = 2\n}\n")}})
	began, end := make(chan none), make(chan none)
	err := engine.AddTool(s, engine.ToolOptions{Name: "wait", Timeout: time.Minute}, func(context.Context, identity.Agent, none) (none, error) {
		began <- none{}
		<-end
		return none{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for _, who := range []string{"ada", "ada", "bob"} {
		calls.Go(func() {
			if got := outcomeCode(s.Execute(t.Context(), callBy(who, "wait", "{}"))); got != "ok" {
				t.Errorf("%s: %s", who, got)
			}
		})
		<-began
	}
	const busy = "POLICY_DENIED: over the limit of 2 calls at once; try again in 1 s"
	for range 10 {
		if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "wait", "{}"))); got != busy {
			t.Errorf("a third call at once: %s", got)
		}
	}
	close(end)
	calls.Wait()
	calls.Go(func() { <-began })
	if got := outcomeCode(s.Execute(t.Context(), callBy("ada", "wait", "{}"))); got != "ok" {
		t.Errorf("a call after those that ended: %s", got)
	}
	calls.Wait()
}

// Reloads change the order of the limits meanwhile.
func TestLimit_manyCallers(t *testing.T) {
	first, second := "limit \"a\" {\n  rate = \"1/h\"\n  burst = 50\n}\n", "limit \"b\" {\n  rate = \"2/h\"\n  burst = 70\n  concurrency = 100\n}\n"
	config := files("mcpd.hcl", first+second)
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: config}, Now: (&manualClock{}).now})
	var let atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 20 {
				if s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`)).Err == nil {
					let.Add(1)
				}
			}
		})
	}
	for i := range 6 {
		config["mcpd.hcl"].Data = []byte([]string{second + first, first + second}[i%2])
		if _, err := s.Load(t.Context()); err != nil {
			t.Error(err)
		}
	}
	callers.Wait()
	if let.Load() != 50 {
		t.Errorf("%d calls passed, want 50", let.Load())
	}
}

// A slot is freed however the call ends, whether or not its function has returned.
func TestLimit_releases(t *testing.T) {
	type none struct{}
	s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "limit \"l\" { concurrency = 1 }\n")}})
	end := make(chan struct{})
	for options, run := range map[*engine.ToolOptions]func(context.Context, identity.Agent, none) (none, error){
		{Name: "panics", Timeout: time.Minute}: func(context.Context, identity.Agent, none) (none, error) { panic("oh") },
		{Name: "stuck", Timeout: 10 * time.Millisecond}: func(context.Context, identity.Agent, none) (none, error) {
			<-end
			return none{}, nil
		},
	} {
		if err := engine.AddTool(s, *options, run); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left sync.WaitGroup
	for tool, want := range map[string]call.Code{"panics": call.ExecutionError, "stuck": call.Timeout} {
		for range 2 {
			if r := s.Execute(t.Context(), callBy("ada", tool, "{}")); r.Err == nil || r.Err.Code != want {
				t.Errorf("%s: got %+v", tool, r.Err)
			}
			late := make(lateResults, 1)
			r := callBy("ada", tool, "{}")
			r.Late = late
			left.Go(func() {
				if r := s.Execute(t.Context(), r); !r.Detached {
					late <- r
				}
			})
			if r := <-late; r.Err == nil || r.Err.Code != want {
				t.Errorf("%s, in the goroutine of its call: got %+v", tool, r.Err)
			}
		}
	}
	close(end)
	left.Wait()
}
