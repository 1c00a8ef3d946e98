package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
)

// countingTool is a tool that returns how often its script has run.
const countingTool = `
tool "count" {
  read_only = true
  input "id" {
    type    = string
    default = "a"
  }
  input "tags" {
    type     = any
    required = false
  }
  input "who" {
    type = string
    from = "principal.claims.tenant"
  }
  cache {
    ttl   = "30s"
    scope = "%s"
  }
  allow {
    kv "runs" { scope = "server" }
  }
  run = <<JS
    const n = await kv.runs.incr("n");
    if (input.id === "throws") throw new Error("run " + n);
    return "run " + n;
  JS
}
`

// countCall returns a call of that tool.
func countCall(p identity.Principal, session, arguments string) call.Request {
	if p.Claims == nil {
		p.Claims = map[string]any{"tenant": "t"}
	}
	return call.Request{Name: "count", Arguments: json.RawMessage(arguments), Caller: identity.Caller{Principal: p, Source: identity.Source{Session: session}}}
}

func local(id string) identity.Principal {
	return identity.Principal{ID: id, Kind: identity.KindLocal}
}

func TestCache_perPrincipal(t *testing.T) {
	clock := &manualClock{}
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(countingTool, "principal"))}, Now: clock.now})
	ada := local("ada")
	wantValue(t, s, countCall(ada, "1", `{}`), `"run 1"`)
	wantValue(t, s, countCall(ada, "2", `{"id": "a"}`), `"run 1"`)
	wantValue(t, s, countCall(ada, "", `{"id": "b"}`), `"run 2"`)
	wantValue(t, s, countCall(local("bob"), "1", `{}`), `"run 3"`)
	wantValue(t, s, countCall(identity.Principal{ID: "ada", Kind: "jwt"}, "1", `{}`), `"run 4"`)
	wantValue(t, s, countCall(identity.Principal{ID: "ada", Kind: identity.KindLocal, Issuer: "x"}, "1", `{}`), `"run 5"`)
	// A computed input is part of the arguments.
	ada.Claims = map[string]any{"tenant": "other"}
	wantValue(t, s, countCall(ada, "1", `{}`), `"run 6"`)
	// Anonymous callers are only the same within a session.
	wantValue(t, s, countCall(anonymousOf("t"), "", `{}`), `"run 7"`)
	wantValue(t, s, countCall(anonymousOf("t"), "", `{}`), `"run 8"`)
	wantValue(t, s, countCall(anonymousOf("t"), "1", `{}`), `"run 9"`)
	wantValue(t, s, countCall(anonymousOf("t"), "1", `{}`), `"run 9"`)
	wantValue(t, s, countCall(anonymousOf("t"), "2", `{}`), `"run 10"`)
	clock.advance(30*time.Second - 1)
	wantValue(t, s, countCall(local("ada"), "1", `{}`), `"run 1"`)
	clock.advance(1)
	wantValue(t, s, countCall(local("ada"), "1", `{}`), `"run 11"`)
}

// The first call runs the script, and the others wait for it.
func TestCache_coalescesCalls(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(countingTool, "server"))}})
	var calls sync.WaitGroup
	begin := make(chan struct{})
	for range 20 {
		calls.Go(func() {
			<-begin
			if r := s.Execute(t.Context(), countCall(local("ada"), "", `{}`)); r.Err != nil || string(r.Value) != `"run 1"` {
				t.Errorf("it is %s, %v", r.Value, r.Err)
			}
		})
	}
	close(begin)
	calls.Wait()
}

func anonymousOf(tenant string) identity.Principal {
	p := identity.Anonymous()
	p.Claims = map[string]any{"tenant": tenant}
	return p
}

func TestCache_serverScope(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(countingTool, "server"))}})
	wantValue(t, s, countCall(local("ada"), "1", `{"tags": {"a": 1, "b": [2.0]}}`), `"run 1"`)
	wantValue(t, s, countCall(anonymousOf("t"), "", `{"tags":{"b":[2],"a":1e0},"id":"\u0061"}`), `"run 1"`)
	wantValue(t, s, countCall(anonymousOf("u"), "", `{"tags":{"b":[2],"a":1}}`), `"run 2"`)
	wantValue(t, s, countCall(local("ada"), "1", `{"tags": {"a": "1", "b": [2]}}`), `"run 3"`)
}

func TestCache_runsPipeline(t *testing.T) {
	var mu sync.Mutex
	var ended []string
	hook := func(_ context.Context, e call.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Phase != call.Start {
			ended = append(ended, fmt.Sprint(e.Phase, " ", e.Cached))
		}
	}
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools: files("t.hcl", fmt.Sprintf(countingTool, "server")),
			Config: files("mcpd.hcl", `
policy "not_eve" {
  deny   = "principal.id == 'eve'"
  reason = "Not for Eve"
}
limit "three" {
  rate  = "1/h"
  burst = 3
}`),
		}, Hooks: []engine.Hook{hook},
	})
	wantValue(t, s, countCall(local("ada"), "1", `{}`), `"run 1"`)
	wantValue(t, s, countCall(local("ada"), "1", `{}`), `"run 1"`)
	if r := s.Execute(t.Context(), countCall(local("eve"), "1", `{}`)); r.Err == nil || r.Err.Code != call.PolicyDenied {
		t.Errorf("eve gets %s, %v", r.Value, r.Err)
	}
	wantValue(t, s, countCall(local("bob"), "1", `{}`), `"run 1"`)
	if r := s.Execute(t.Context(), countCall(local("bob"), "1", `{}`)); r.Err == nil || !r.Err.Limited {
		t.Errorf("over the limit bob gets %s, %v", r.Value, r.Err)
	}
	if diff := cmp.Diff([]string{"end false", "end true", "error false", "end true", "error false"}, ended); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

func TestCache_skipsFailures(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", strings.NewReplacer("%s", "server").Replace(countingTool), "u.hcl", `
tool "unfit" {
  read_only = true
  cache { ttl = "1h" }
  allow {
    kv "runs" { scope = "server" }
  }
  output "n" {
    type = integer
    max  = 2
    min  = 2
  }
  run = "return { n: await kv.runs.incr('unfit') };"
}`)}})
	for n := 1; n < 3; n++ {
		r := s.Execute(t.Context(), countCall(local("ada"), "", `{"id": "throws"}`))
		if want := fmt.Sprintf("run %d", n); r.Err == nil || r.Err.Message != want {
			t.Errorf("got %v, want %s", r.Err, want)
		}
	}
	request := countCall(local("ada"), "", `{}`)
	request.Name = "unfit"
	if r := s.Execute(t.Context(), request); r.Err == nil {
		t.Errorf("a result that does not fit is %s", r.Value)
	}
	for range 2 {
		wantValue(t, s, request, `{"n":2}`)
	}
}

func TestCache_changedTool(t *testing.T) {
	tools := files("t.hcl", fmt.Sprintf(countingTool, "server"))
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}})
	wantValue(t, s, countCall(local("ada"), "", `{}`), `"run 1"`)
	// A change of another file has no effect.
	tools["o.hcl"] = &fstest.MapFile{Data: []byte(addTool), Mode: 0o644}
	reloadAll(t, s)
	wantValue(t, s, countCall(local("ada"), "", `{}`), `"run 1"`)
	for n, edit := range []string{`kv "runs" { scope = "server" }|kv "runs" {` + "\n scope = \"server\"\n max_keys = 9\n}", `return "run|return "Run`} {
		from, to, _ := strings.Cut(edit, "|")
		tools["t.hcl"] = &fstest.MapFile{Data: []byte(strings.Replace(string(tools["t.hcl"].Data), from, to, 1)), Mode: 0o644}
		reloadAll(t, s)
		want := fmt.Sprintf(`"run %d"`, n+2)
		if n == 1 {
			want = `"Run 3"`
		}
		wantValue(t, s, countCall(local("ada"), "", `{}`), want)
		wantValue(t, s, countCall(local("ada"), "", `{}`), want)
	}
}

func reloadAll(t *testing.T, s *engine.Server) {
	t.Helper()
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pureTool is a tool with outcomes that depend on its arguments only.
const pureTool = `
tool "pure" {
  read_only = true
  %s
  input "n" {
    type    = integer
    default = 3
  }
  input "more" {
    type     = any
    required = false
  }
  output "text" {
    type       = string
    max_length = 60
  }
  run = <<JS
    if (input.n === 2) throw new ToolError("two", { n: input.n });
    return { text: "x".repeat(input.n * 8) + JSON.stringify(input.more ?? null) };
  JS
}
`

// The same random calls are made, at random times, with and without a cache.
func TestCache_sameOutcomes(t *testing.T) {
	clock := &manualClock{}
	with := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(pureTool, `cache { ttl = "10s" }`))}, Now: clock.now})
	without := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(pureTool, ""))}, Now: clock.now})
	random := rand.New(rand.NewPCG(7, 7))
	arguments := []string{`{}`, `{"n": 3}`, `{"n": 1}`, `{"n": 2}`, `{"n": 9}`, `{"n": "x"}`, `{"n": 1, "more": {"b": 1, "a": null}}`, `{"n": 1, "more": "\ud83d\ude00"}`, `{"n":1,"more":-0.0}`, `{"n":1,"more":0}`, `[]`}
	for range 600 {
		request := countCall(local(fmt.Sprint(random.IntN(3))), "", arguments[random.IntN(len(arguments))])
		request.Name = "pure"
		if diff := cmp.Diff(outcome(without, request), outcome(with, request)); diff != "" {
			t.Fatalf("%s has another outcome with a cache (-without +with)\n%s", request.Arguments, diff)
		}
		clock.advance(time.Duration(random.IntN(4000)) * time.Millisecond)
	}
}

// outcome returns everything that a caller sees of a call.
func outcome(s *engine.Server, r call.Request) string {
	got := s.Execute(context.Background(), r)
	if got.Err != nil {
		return fmt.Sprintf("%s %s %s %v", got.Err.Code, got.Err.Message, got.Err.Details, got.Err.Violations)
	}
	return fmt.Sprintf("%s %s %s %v", got.Value, got.Content, got.Structured, got.Rich)
}

// Calls run while the tool changes.
func TestCache_perRevision(t *testing.T) {
	const text = "tool \"pure\" {\n  read_only = true\n  timeout   = \"1m\"\n  cache {\n    ttl = \"1h\"\n    scope = \"server\"\n  }\n  run = \"return 'text %d';\"\n}"
	source := func(n int) fstest.MapFS { return files("t.hcl", fmt.Sprintf(text, n)) }
	tools := &swappableFS{now: source(0)}
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}})
	var mu sync.Mutex
	says := map[string]string{s.Snapshot().Revision(): `"text 0"`}
	var callers sync.WaitGroup
	stop := make(chan struct{})
	type seen struct{ revision, value string }
	all := make([][]seen, 4)
	for i := range all {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := s.Execute(context.Background(), call.Request{Name: "pure"})
				if r.Err != nil {
					t.Error(r.Err)
					return
				}
				if last := len(all[i]) - 1; last < 0 || all[i][last] != (seen{r.Revision, string(r.Value)}) {
					all[i] = append(all[i], seen{r.Revision, string(r.Value)})
				}
			}
		})
	}
	for n := 1; n <= 60; n++ {
		tools.swap(source(n % 3))
		reloadAll(t, s)
		mu.Lock()
		says[s.Snapshot().Revision()] = fmt.Sprintf(`"text %d"`, n%3)
		mu.Unlock()
	}
	close(stop)
	callers.Wait()
	for _, caller := range all {
		for _, c := range caller {
			if says[c.revision] != c.value {
				t.Errorf("revision %s says %s, and a caller got %s", c.revision, says[c.revision], c.value)
			}
		}
	}
}

// The script must not depend on the caller if results are shared.
func TestCache_rejectsCallerDependentScript(t *testing.T) {
	const both = "warning cached-callerwarning cached-caller"
	for body, codes := range map[string][2]string{
		"return agent.agent_id;": {"warning cached-caller", "error cached-caller"},
		"return call.id;":        {"warning cached-caller", "error cached-caller"},
		"return input;":          {"", ""},
		"export default (input, ctx) => ctx.agent.agent_id;":                       {"warning cached-caller", "error cached-caller"},
		"export default (input, { call, log }) => call.id;":                        {"warning cached-caller", "error cached-caller"},
		"export default (input, ctx) => ((c) => c.call)(ctx);":                     {both, "error cached-caller"},
		"export default (input, ctx) => { const { vars } = ctx; return vars; };":   {both, "error cached-caller"},
		"export default function () { return arguments[1]['ag' + 'ent']; };":       {both, "error cached-caller"},
		"export default (input, ctx) => { ctx.log.info(input.n); return input; };": {"", ""},
	} {
		for i, scope := range []string{"principal", "server"} {
			run := strconv.Quote(body)
			if strings.HasPrefix(body, "export") {
				run = `file("t.js")`
			}
			definitions := fmt.Sprintf("tool \"t\" {\n  read_only = true\n  cache {\n    ttl = \"1s\"\n    scope = %q\n  }\n  run = %s\n}", scope, run)
			s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", definitions, "t.js", body)}})
			report, _ := s.Load(t.Context())
			got := ""
			for _, p := range report.Problems {
				got += p.Severity.String() + " " + p.Code
			}
			if got != codes[i] {
				t.Errorf("%s for %s: got %q, want %q", body, scope, got, codes[i])
			}
		}
	}
}

// The test bounds the allocations of a cache hit.
func TestCache_hitAllocations(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", fmt.Sprintf(pureTool, `cache { ttl = "1h" }`))}})
	request := countCall(local("ada"), "", `{"n": 4}`)
	request.Name = "pure"
	if r := s.Execute(t.Context(), request); r.Err != nil {
		t.Fatal(r.Err)
	}
	const budget = 32
	if got := testing.AllocsPerRun(200, func() { s.Execute(t.Context(), request) }); got > budget {
		t.Errorf("%v allocations, want at most %d", got, budget)
	}
}

// swappableFS is a directory that is replaced as a whole.
type swappableFS struct {
	mu  sync.Mutex
	now fstest.MapFS
}

func (s *swappableFS) swap(to fstest.MapFS) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = to
}

// Open opens a file of the current directory.
func (s *swappableFS) Open(name string) (fs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Open(name)
}

// randomTool has another result in each run.
const randomTool = `
tool "random" {
  read_only = true
  %s
  input "n" {
    type    = integer
    default = 0
  }
  %s
  run = "return crypto.randomUUID();"
}
`

// sharing returns a server that shares its state.
func sharing(t *testing.T, url, tools, config string, o engine.Options) *engine.Server {
	t.Helper()
	o.StateURL, o.StateKeys = url, []string{"0123456789abcdef"}
	o.Files.Tools, o.Files.Config = files("t.hcl", tools), files("mcpd.hcl", config)
	s := unloaded(t, o)
	s.Inside().States().Options.ResultTimeout = time.Minute // a busy machine is not an unreachable database
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inside().State(); err != nil {
		t.Fatal(err)
	}
	return s
}

// random returns the result of the tool.
func random(t *testing.T, s *engine.Server, arguments string) string {
	t.Helper()
	r := s.Execute(t.Context(), call.Request{Name: "random", Arguments: json.RawMessage(arguments), Caller: identity.Caller{Principal: local("ada")}})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return string(r.Value)
}

func TestCache_sharedByReplicas(t *testing.T) {
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	url := database.URL("postgres", "")
	const cache = "cache {\n ttl = \"1h\"\n scope = \"server\"\n }"
	const config = "secret \"key\" { env = \"KEY\" }\n"
	env := func(name string) (string, bool) { return "value of " + name, true }
	for _, row := range []struct {
		name, block, extra string
		shared             bool
	}{
		{"server", cache, "", true},
		{"permission", cache, "allow {\n http \"web\" { hosts = [\"example.com:443\"] }\n }", true},
		{"principal", strings.Replace(cache, "server", "principal", 1), "", false},
		{"secret", cache, "allow {\n http \"web\" {\n hosts = [\"example.com:443\"]\n header \"Authorization\" { value = secret.key }\n }\n }", false},
		{"environment", cache, "allow {\n env { names = [\"REGION\"] }\n }", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := engine.Options{}
			o.Files.LookupEnv = env
			tools := fmt.Sprintf(randomTool, row.block, row.extra)
			a, b := sharing(t, url, tools, config, o), sharing(t, url, tools, config, o)
			first := random(t, a, `{}`)
			if again := random(t, a, `{"n": 0}`); again != first {
				t.Errorf("the replica itself has %s, want %s", again, first)
			}
			if other := random(t, b, `{}`); (other == first) != row.shared {
				t.Errorf("another replica has %s after %s", other, first)
			}
			if random(t, b, `{"n": 1}`) == first {
				t.Error("other arguments have the same result")
			}
		})
	}

	var mu sync.Mutex
	var cached []bool
	hook := engine.Options{Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Phase == call.End {
			cached = append(cached, e.Cached)
		}
	}}}
	tools := fmt.Sprintf(randomTool, cache, "")
	a := sharing(t, url, tools, "", engine.Options{})
	for name, change := range map[string]struct {
		tools, config string
		o             engine.Options
	}{
		"description": {tools: strings.Replace(tools, "read_only", "description = \"Other.\"\n read_only", 1)},
		"script":      {tools: strings.Replace(tools, "return crypto", "return '' + crypto", 1)},
		"version":     {tools: tools, o: engine.Options{Version: "2"}},
	} {
		if random(t, sharing(t, url, change.tools, change.config, change.o), `{}`) == random(t, a, `{}`) {
			t.Errorf("another %s has the same result", name)
		}
	}
	b := sharing(t, url, tools, "", hook)
	for range 2 {
		if random(t, b, `{}`) != random(t, a, `{}`) {
			t.Error("an equal tool has another result")
		}
	}

	// A call does not fail without the database.
	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	if random(t, b, `{}`) != random(t, a, `{}`) {
		t.Error("a replica has forgotten the result")
	}
	if random(t, b, `{"n": 7}`) == random(t, a, `{"n": 7}`) {
		t.Error("a result is shared without the database")
	}
	b.Close(t.Context())
	if diff := cmp.Diff([]bool{true, true, true, false}, cached); diff != "" {
		t.Errorf("cached (-want +got)\n%s", diff)
	}
}
