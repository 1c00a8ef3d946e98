package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

// anyInput is an input schema that accepts everything.
var anyInput = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)

// changingUpstream is a server with sessions and changing tools.
type changingUpstream struct {
	*mcp.Server
	url string
}

func newChangingUpstream(t *testing.T, tools ...string) *changingUpstream {
	s := mcp.NewServer(&mcp.Implementation{Name: "changing", Version: "1"}, nil)
	c := &changingUpstream{Server: s, url: web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))}
	for _, name := range tools {
		c.add(name, anyInput)
	}
	return c
}

func (c *changingUpstream) add(name string, input json.RawMessage) {
	c.AddTool(&mcp.Tool{Name: name, InputSchema: input}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if name == "waits" {
			<-ctx.Done()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
	})
}

// addWaitingTool adds a tool that blocks until its call is cancelled, and returns a channel that is closed
// then.
func (c *changingUpstream) addWaitingTool() <-chan struct{} {
	cancelled := make(chan struct{})
	c.AddTool(&mcp.Tool{Name: "waits", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	return cancelled
}

// names returns the served tools.
func names(s *engine.Server) (names []string) {
	for _, t := range s.Snapshot().Tools() {
		names = append(names, t.Name())
	}
	return names
}

// waitForSnapshot waits for a snapshot with a condition.
func waitForSnapshot(t *testing.T, s *engine.Server, so func() bool) {
	t.Helper()
	published := make(chan struct{}, 1)
	defer s.Watch(func([]string) {
		select {
		case published <- struct{}{}:
		default:
		}
	})()
	for !so() {
		select {
		case <-published:
		case <-t.Context().Done():
			t.Fatal("the condition was not met in time")
		}
	}
}

// warnings returns the warnings of the last load.
func warnings(s *engine.Server) (told []string) {
	for _, p := range s.Status().Problems {
		told = append(told, p.Summary)
	}
	return told
}

func TestUpstream_policies(t *testing.T) {
	up := newChangingUpstream(t, "read", "write")
	var hooked []call.Event
	s := server(t, engine.Options{
		Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, `labels = { team = "lab" }`)+`
policy "small" {
  tools  = ["lab_write"]
  deny   = "args.n > 5 && tool.labels.team == 'lab'"
  reason = "Too much"
}
limit "slow" {
  tools = ["lab_read"]
  rate  = "1/h"
}
`)},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) { hooked = append(hooked, e) }},
	})
	var got []string
	for _, r := range []call.Request{tool("lab_write", `{"n":1}`), tool("lab_write", `{"n":6}`), tool("lab_read", `{}`), tool("lab_read", `{}`)} {
		got = append(got, outcomeLine(executeCall(t, s, r)))
	}
	want := []string{`[{"type":"text","text":"write"}]`, "POLICY_DENIED: Too much", `[{"type":"text","text":"read"}]`}
	if diff := cmp.Diff(want, got[:3]); diff != "" || !strings.HasPrefix(got[3], "POLICY_DENIED: ") {
		t.Errorf("calls end with %q (-want +got)\n%s", got, diff)
	}
	if len(hooked) != 8 || hooked[0].Tool != "lab_write" {
		t.Errorf("hooks got %d events", len(hooked))
	}
}

// A policy that does not match an accepted tool in mcpd.lock is an error, after an edit and at the
// start.
func TestRules_ofAcceptedTools(t *testing.T) {
	up, lock := newChangingUpstream(t, "write"), newLock(t)
	tools := files("own.hcl", `tool "own" { run = "return 1;" }`)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools, LockPath: lock}})
	tools["p.hcl"] = files("p.hcl", typo)["p.hcl"]
	_, edit := s.Load(t.Context())
	_, start := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools, LockPath: lock}}).Load(t.Context())
	for what, err := range map[string]error{"edit": edit, "start": start} {
		var problems diag.List
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(problems[0].Summary, `tool "lab_write" has no argument "m"`) || problems[0].Range.Start.Line != 4 {
			t.Errorf("the %s ends with %v", what, err)
		}
	}
	if diff := cmp.Diff([]string{"lab_write", "own"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Only the server knows the schema of an unpinned tool, so the tool is left out, and the files are
// loaded.
func TestRules_ofToolsThatAreNotPinned(t *testing.T) {
	up := newChangingUpstream(t, "write")
	tools := files("own.hcl", `tool "own" { run = "return 1;" }`)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, `pin = "off"`)), Tools: tools, LockPath: newLock(t)}})
	tools["p.hcl"] = files("p.hcl", typo)["p.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"own"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := s.Status().Health(); got != "left out because rules do not fit: 1 of lab" {
		t.Errorf("the status is %q", got)
	}
}

// No tool of a new server is accepted while a policy does not match it, so that every start behaves
// alike. After the fix all are accepted.
func TestRules_atFirstUse(t *testing.T) {
	up, lock := newChangingUpstream(t, "read", "write"), newLock(t)
	for what, rule := range map[string]string{"inputs": typo, "a name": strings.NewReplacer("lab_write", "lab_wirte", "args.m > 5", "call.via == 'code'").Replace(typo)} {
		tools := files("p.hcl", rule, "own.hcl", `tool "own" { run = "return 1;" }`)
		o := engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: tools, LockPath: lock}}
		var s *engine.Server
		for range 2 {
			s = server(t, o)
			if diff := cmp.Diff([]string{"own"}, names(s)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", what, diff)
			}
			if got := s.Status().Health(); got != "left out because rules do not fit: 2 of lab" || !s.Status().Ready() {
				t.Errorf("%s: the status is %q", what, got)
			}
			if told := warnings(s); len(told) != 2 || !slices.Contains(told, `no tool of the upstream "lab" is accepted and served until policies and limits match its tools`) {
				t.Errorf("%s: the warnings are %q", what, told)
			}
			if _, err := os.Stat(lock); err == nil {
				t.Errorf("%s: the lock file is written", what)
			}
		}
		tools["p.hcl"].Data = []byte(strings.ReplaceAll(typo, "args.m", "args.n"))
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"lab_read", "lab_write", "own"}, names(s)); diff != "" {
			t.Errorf("%s, fixed (-want +got)\n%s", what, diff)
		}
		if held := accepted(t, lock); len(held) != 2 {
			t.Errorf("%s, fixed: the lock file has %q", what, held)
		}
		if _, err := unloaded(t, o).Load(t.Context()); err != nil {
			t.Errorf("%s, fixed: the next start ends with %v", what, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
}

// typo is a policy that does not match a tool.
const typo = `
policy "typo" {
  tools  = ["lab_write"]
  deny   = "args.m > 5"
  reason = "Too much"
}
`

func TestUpstream_mismatchAtStart(t *testing.T) {
	up := newChangingUpstream(t, "read", "write")
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url)), Tools: files("p.hcl", typo)}})
	if diff := cmp.Diff([]string{"lab_read"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const why = `a rule that covers it does not fit its inputs: tool "lab_write" has no argument "m"`
	if diff := cmp.Diff([]string{"tool lab_write: " + why}, s.Status().Upstreams[0].LeftOut); diff != "" {
		t.Errorf("left out (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`the tool "lab_write" of the upstream "lab" is left out: ` + why}, warnings(s)); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
	if got := s.Status().Health(); got != "left out because rules do not fit: 1 of lab" || !s.Status().Ready() {
		t.Errorf("the status is %q", got)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Errorf("files that have not changed: %v", err)
	}
}

func TestUpstream_listChange(t *testing.T) {
	up := newChangingUpstream(t, "read")
	s := federated(t, upstreamAt(up.url))
	before := s.Snapshot().Tool("lab_read")
	up.add("more", anyInput)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_more", "lab_read"}) })
	if s.Snapshot().Tool("lab_read") != before {
		t.Error("an unchanged tool was replaced")
	}
	up.RemoveTools("read")
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_more"}) })
}

func TestUpstream_mismatchIsolated(t *testing.T) {
	up := newChangingUpstream(t, "read", "write")
	config := upstreamAt(up.url) + `
policy "small" {
  tools  = ["lab_*"]
  deny   = "args.n > 5"
  reason = "Too much"
}
`
	tools := files("a.hcl", `tool "own" { run = "return 1;" }`)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", config), Tools: tools}})
	up.add("write", json.RawMessage(`{"type":"object","properties":{"other":{"type":"string"}},"additionalProperties":false}`))
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_read", "own"}) })
	if got := outcomeLine(executeCall(t, s, tool("lab_write", `{"other":"x"}`))); !strings.HasPrefix(got, "TOOL_NOT_FOUND") {
		t.Errorf("a tool that its policy cannot judge is called: %s", got)
	}
	if told := warnings(s); !slices.ContainsFunc(told, func(w string) bool {
		return strings.HasPrefix(w, `the tool "lab_write" of the upstream "lab" is left out: a rule that covers it does not fit its inputs`)
	}) {
		t.Errorf("the warnings are %q", told)
	}
	if left := s.Status().Upstreams[0].LeftOut; len(left) != 1 {
		t.Errorf("the status has %q", left)
	}
	// An edit of another file is still loaded.
	tools["a.hcl"].Data = []byte(`tool "mine" { run = "return 1;" }`)
	if _, err := s.Load(t.Context()); err != nil {
		t.Errorf("an edit is rejected because of an upstream change: %v", err)
	}
	if diff := cmp.Diff([]string{"lab_read", "mine"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	up.add("write", anyInput)
	waitForSnapshot(t, s, func() bool { return slices.Equal(names(s), []string{"lab_read", "lab_write", "mine"}) })
}

func TestUpstream_warnsUnknownNames(t *testing.T) {
	up, lock := newChangingUpstream(t, "read", "write", "drop"), newLock(t)
	block := upstreamAt(up.url, `include = ["read", "wirte", "d*", "x*"]`, `exclude = ["dropp", "drop*"]`, `rename = { raed = "look", write = "put" }`, `override "drpo" {
  description = "No"
}`)
	want := []string{
		`the upstream "lab" lists nothing that is called "wirte", which include names; did you mean "write"?`,
		`the upstream "lab" lists nothing that the pattern "x*" of include covers`,
		`the upstream "lab" lists nothing that is called "drpo", which an override block names; did you mean "drop"?`,
		`the upstream "lab" lists nothing that is called "dropp", which exclude names; did you mean "drop"?`,
		`the upstream "lab" lists nothing that is called "raed", which rename names; did you mean "read"?`,
	}
	told := func(s *engine.Server) (told []string) {
		for _, p := range s.Status().Problems {
			told = append(told, strings.TrimSuffix(p.Summary+"; "+p.Detail, "; "))
		}
		slices.Sort(told)
		return told
	}
	s := pinnedServer(t, lock, block)
	slices.Sort(want)
	if diff := cmp.Diff(want, told(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The lock file knows the served tools, and not the excluded ones.
	offline := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, `include = ["raed"]`, `exclude = ["dropp"]`, `rename = { raed = "look" }`)), LockPath: lock}, Mode: engine.Offline})
	if diff := cmp.Diff([]string{`the upstream "lab" lists nothing that is called "raed", which include names; did you mean "read"?`}, told(offline)); diff != "" {
		t.Errorf("offline (-want +got)\n%s", diff)
	}
}

func TestUpstream_taskOnlyTool(t *testing.T) {
	block := upstreamAt(newTestUpstreams(t)["legacy"])
	for _, s := range []*engine.Server{federated(t, block), pinnedServer(t, newLock(t), block)} {
		if diff := cmp.Diff([]string{"lab_asks", "lab_may", "lab_samples"}, names(s)); diff != "" {
			t.Errorf("tools (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]string{`upstream "lab": the tool "works" is left out: it can only be called as a task`}, warnings(s)); diff != "" {
			t.Errorf("warnings (-want +got)\n%s", diff)
		}
	}
}

func TestUpstream_deadHidesOwnTools(t *testing.T) {
	up := newChangingUpstream(t, "read")
	s := federated(t, upstreamNamed("gone", "http://127.0.0.1:1/mcp")+upstreamAt(up.url), "a.hcl", `tool "own" { run = "return 1;" }`)
	if diff := cmp.Diff([]string{"lab_read", "own"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	status := s.Status()
	if status.Health() != "not reached: gone" || !status.Ready() || len(status.Upstreams) != 2 || status.Upstreams[0].Err == nil || status.Upstreams[0].NextAttempt.IsZero() || !status.Upstreams[1].Up {
		t.Errorf("the status is %q, %+v", status.Health(), status.Upstreams)
	}
}

func TestUpstream_retryMessage(t *testing.T) {
	one := newTestUpstream()
	well := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{Stateless: true})
	var gone atomic.Bool
	s := federated(t, upstreamAt(web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		well.ServeHTTP(w, r)
	}))))
	gone.Store(true)
	for range 10 {
		executeCall(t, s, tool("lab_sum", `{"a":1}`)) // which reveals that it is unreachable
	}
	waitForSnapshot(t, s, func() bool { return len(names(s)) == 0 })
	const want = `TOOL_NOT_FOUND: no tool named "lab_sum" now: the server behind it cannot be reached; try again later`
	if got := outcomeLine(executeCall(t, s, tool("lab_sum", `{"a":1}`))); got != want {
		t.Errorf("the message is %s", got)
	}
	gone.Store(false)
	waitForSnapshot(t, s, func() bool { return s.Snapshot().Tool("lab_sum") != nil })
}

func TestUpstream_cancelCall(t *testing.T) {
	up := newChangingUpstream(t)
	cancelled := up.addWaitingTool()
	s := federated(t, upstreamAt(up.url, `timeout = "50ms"`))
	if got := outcomeLine(executeCall(t, s, tool("lab_waits", `{}`))); got != "TIMEOUT: the tool did not end within its timeout of 50ms" {
		t.Errorf("the call ends with %s", got)
	}
	<-cancelled
}

func TestUpstream_noCallerCredentials(t *testing.T) {
	var seen []http.Header
	inner := newTestUpstream()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return inner }, &mcp.StreamableHTTPOptions{Stateless: true})
	url := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		handler.ServeHTTP(w, r)
	}))
	s := server(t, engine.Options{
		Files: engine.Files{
			Config:    files("mcpd.hcl", "secret \"key\" {\n  env = \"KEY\"\n}\n"+upstreamAt(url, "header \"X-Key\" {\n    value = \"k-${secret.key}\"\n  }")),
			LookupEnv: func(name string) (string, bool) { return "sesame-open", name == "KEY" },
		},
	})
	r := tool("lab_text", `{}`)
	r.Caller.Principal.Claims = map[string]any{"token": "inbound"}
	if got := outcomeLine(executeCall(t, s, r)); !strings.Contains(got, "a text") {
		t.Fatal(got)
	}
	for _, h := range seen {
		if h.Get("X-Key") != "k-sesame-open" || h.Get("Authorization") != "" || h.Get("Cookie") != "" {
			t.Errorf("a request has the headers %v", h)
		}
	}
}
