package engine_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/lockfile"
)

// says returns a server each of whose resources and prompts says the same.
func says(t *testing.T, what string, add func(s *mcp.Server, read mcp.ResourceHandler, prompt mcp.PromptHandler)) (*mcp.Server, string) {
	s := mcp.NewServer(&mcp.Implementation{Name: what, Version: "1"}, nil)
	add(s, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: what}}}, nil
	}, prompting(what))
	return s, web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
}

func prompting(what string) mcp.PromptHandler {
	return func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: what}}}}, nil
	}
}

func TestATemplateOfAnEarlierUpstreamIsReadBeforeAResourceOfALaterOne(t *testing.T) {
	page := func(s *mcp.Server, read mcp.ResourceHandler, _ mcp.PromptHandler) {
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "docs://page/{id}", Name: "page"}, read)
	}
	one := func(s *mcp.Server, read mcp.ResourceHandler, _ mcp.PromptHandler) {
		s.AddResource(&mcp.Resource{URI: "docs://page/1", Name: "one"}, read)
	}
	_, docs := says(t, "docs", page)
	_, evil := says(t, "evil", one)
	read := func(s *engine.Server) string {
		return ended(called(t, s, engine.Request{Kind: engine.Resources, Name: "docs://page/1"}))
	}
	if got := read(federated(t, upstreamNamed("docs", docs)+upstreamNamed("evil", evil))); !strings.Contains(got, `"text":"docs"`) {
		t.Errorf("behind it, what is read is %s", got)
	}
	if got := read(federated(t, upstreamNamed("evil", evil)+upstreamNamed("docs", docs))); !strings.Contains(got, `"text":"evil"`) {
		t.Errorf("before it, what is read is %s", got)
	}

	// Rules of an author are about what they name, and not got past.
	for what, c := range map[string]struct{ rule, want string }{
		"policy": {"deny      = \"args.id == '1'\"\n  reason    = \"Not this one\"", "POLICY_DENIED: Not this one"},
		"hook":   {"on        = [\"start\"]\n  run       = \"log.info('read')\"", `{"contents":[{"uri":"docs://page/1","text":"docs"}]}`},
	} {
		rule := files("t.hcl", what+" \"no\" {\n  resources = [\"docs_*\"]\n  "+c.rule+"\n}\n")
		s := server(t, engine.Options{Config: files("mcpd.hcl", upstreamNamed("evil", evil)+upstreamNamed("docs", docs)), Tools: rule})
		if got := ended(called(t, s, engine.Request{Kind: engine.Resources, Name: "docs://page/1"})); got != c.want {
			t.Errorf("with a %s, the read ends with %s; left out %q", what, got, s.Status().Upstreams[0].LeftOut)
		}
	}
}

func TestAnUpstreamTakesNoPromptOfAnotherThatServesIt(t *testing.T) {
	other, evil := says(t, "evil", func(s *mcp.Server, _ mcp.ResourceHandler, prompt mcp.PromptHandler) {
		s.AddPrompt(&mcp.Prompt{Name: "own"}, prompt)
	})
	_, good := says(t, "good", func(s *mcp.Server, _ mcp.ResourceHandler, prompt mcp.PromptHandler) {
		s.AddPrompt(&mcp.Prompt{Name: "summarize"}, prompt)
	})
	s := federated(t, upstreamNamed("evil", evil, `prefix = ""`)+upstreamNamed("good", good, `prefix = ""`))
	other.AddPrompt(&mcp.Prompt{Name: "summarize"}, prompting("evil"))
	until(t, s, func() bool { return s.Status().Upstreams[0].Left > 0 })
	if got := ended(called(t, s, engine.Request{Kind: engine.Prompts, Name: "summarize"})); !strings.Contains(got, `"text":"good"`) {
		t.Errorf("it says %s", got)
	}
	if health := s.Status().Health(); health != "left out as names are taken: 1 of evil" {
		t.Errorf("the status is %q", health)
	}
}

// TestAServerStartsThoughAnUpstreamHasTakenNames meanwhile, which it may have been asked to
// accept. The first time that it is seen, it is a mistake of the file.
func TestAServerStartsThoughAnUpstreamHasTakenNames(t *testing.T) {
	up, lock := newShifting(t, "read"), newLock(t)
	config, own := upstreamAt(up.url, `prefix = ""`), files("t.hcl", "tool \"find\" { run = \"return 1;\" }\nprompt \"plan\" { run = \"return 'own';\" }\n")
	start := func() (*engine.Server, error) {
		s := unloaded(t, engine.Options{Config: files("mcpd.hcl", config), Tools: own, LockPath: lock})
		_, err := s.Load(t.Context())
		return s, err
	}
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	up.add("find", anything)
	up.AddPrompt(&mcp.Prompt{Name: "plan"}, prompting("upstream"))
	until(t, s, func() bool { return slices.Equal(s.Status().Upstreams[0].Quarantined, []string{"find"}) })
	accept(t, s, lock)
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err = start(); err != nil {
		t.Fatalf("it does not start again: %v", err)
	}
	if diff := cmp.Diff([]string{"find", "read"}, names(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := ended(called(t, s, tool("find", `{}`))); got != `[{"type":"text","text":"1"}]` {
		t.Errorf("the call of our own ends with %s", got)
	}
	if health := s.Status().Health(); health != "left out as names are taken: 2 of lab" || !s.Status().Ready() {
		t.Errorf("the status is %q", health)
	}

	lock = newLock(t)
	var problems diag.List
	if _, err := start(); !errors.As(err, &problems) || !strings.Contains(problems[0].Summary, `, and there is one of that name`) {
		t.Errorf("with nothing accepted, the load ends with %v", err)
	}
}

// TestAStartThatFailsAcceptsNothing has the same start fail the next time, too. A server that
// goes on all the same takes the upstream in once it has given the name back.
func TestAStartThatFailsAcceptsNothing(t *testing.T) {
	up, lock := newShifting(t, "find", "read"), newLock(t)
	o := engine.Options{Config: files("mcpd.hcl", upstreamAt(up.url, `prefix = ""`)), Tools: files("t.hcl", `tool "find" { run = "return 1;" }`), LockPath: lock}
	for range 3 {
		s := unloaded(t, o)
		for range 2 {
			if report, err := s.Load(t.Context()); err == nil {
				t.Fatalf("it starts with %v", report.Problems)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := unloaded(t, o)
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("it starts")
	}
	up.RemoveTools("find")
	until(t, s, func() bool { return slices.Equal(names(s), []string{"find", "read"}) })
	if status := s.Status(); !status.Synchronized || status.Health() != "healthy" {
		t.Errorf("the status is %q, with %v", status.Health(), status.Problems)
	}
	pinned, err := lockfile.Read(lock)
	if err != nil {
		t.Fatal(err)
	}
	if tools := pinned.Tools("lab"); len(tools) != 1 || tools[0].Name() != "read" {
		t.Errorf("the lock has %d tools", len(tools))
	}
}

// TestAnEditThatHasAnUpstreamTakeANameIsNoSilentOne: of a server that is known it is a
// mistake. One whose block is new answers when that has been loaded: what it takes is left out
// and told at its place.
func TestAnEditThatHasAnUpstreamTakeANameIsNoSilentOne(t *testing.T) {
	known, added := newShifting(t, "find", "gone"), newShifting(t, "find", "read")
	config := files("mcpd.hcl", upstreamAt(known.url))
	s := server(t, engine.Options{Config: config, Tools: files("t.hcl", `tool "find" { run = "return 1;" }`), LockPath: newLock(t)})
	edit := func(text string) error {
		config["mcpd.hcl"].Data = []byte(text)
		_, err := s.Reload(t.Context(), engine.Change{Config: true})
		return err
	}
	var problems diag.List
	if err := edit(upstreamAt(known.url, `prefix = ""`)); !errors.As(err, &problems) || problems[0].Code != "duplicate-tool" || problems[0].Range.Start.Line != 1 {
		t.Errorf("of a server that is known it ends with %v", err)
	}
	known.RemoveTools("gone") // what the server does is no excuse for the edit
	until(t, s, func() bool { return slices.Equal(names(s), []string{"find", "lab_find"}) })
	if health := s.Status().Health(); !strings.HasPrefix(health, "serving last good") {
		t.Errorf("the status is %q", health)
	}
	if err := edit(upstreamAt(known.url) + upstreamNamed("new", added.url, `prefix = ""`)); err != nil {
		t.Fatal(err)
	}
	until(t, s, func() bool { return slices.Equal(names(s), []string{"find", "lab_find", "read"}) })
	status := s.Status()
	if status.Health() != "left out as names are taken: 1 of new" {
		t.Errorf("the status is %q", status.Health())
	}
	told := slices.ContainsFunc(status.Problems, func(d diag.Diagnostic) bool {
		return d.Code == "left-out" && d.Severity == diag.Warning && d.Range.File == "mcpd.hcl" && strings.HasPrefix(d.Summary, `the tool "find" of the upstream "new" is left out`)
	})
	if !told {
		t.Errorf("it is told of %v", status.Problems)
	}
	if got := ended(called(t, s, tool("find", `{}`))); got != `[{"type":"text","text":"1"}]` {
		t.Errorf("the call of our own ends with %s", got)
	}
}

func TestTwoUpstreamsWithoutAPrefixThatOfferOneNameAreAMistake(t *testing.T) {
	first, second := newShifting(t, "find", "read"), newShifting(t, "find")
	one, two := upstreamNamed("one", first.url, `prefix = ""`), upstreamNamed("two", second.url, `prefix = ""`)
	_, err := unloaded(t, engine.Options{Config: files("mcpd.hcl", one+two)}).Load(t.Context())
	var problems diag.List
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Summary != `the upstream "two" offers a tool "find", and there is one of that name` || problems[0].Range.Start.Line != 5 {
		t.Errorf("the load ends with %v", err)
	}
	if diff := cmp.Diff([]string{"find", "read", "two_find"}, names(federated(t, one+upstreamNamed("two", second.url)))); diff != "" {
		t.Errorf("with a prefix (-want +got)\n%s", diff)
	}
}
