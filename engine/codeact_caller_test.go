package engine_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// scopedTools is one tool that needs a scope, and one for all callers.
const scopedTools = `
tool "order" {
  description = "Orders a thing"
  input "what" {
    type    = string
    default = "it"
  }
  run = "return 'ordered ' + input.what;"
}
tool "list" {
  description = "Lists what was ordered"
  run         = "return 'all';"
}
policy "staff" {
  tools  = ["order"]
  deny   = "!('orders' in principal.scopes)"
  reason = "For staff"
}
policy "hers" {
  tools  = ["order"]
  deny   = "call.via == 'code' && args.what == 'hers' && principal.id != 'ada'"
  reason = "For Ada"
}
`

// withCaller sets a local user with scopes as the caller.
func withCaller(id string, r call.Request, scopes ...string) call.Request {
	r.Caller = identity.Caller{Principal: identity.Principal{ID: id, Kind: identity.KindLocal, Scopes: scopes, Groups: []string{}, Claims: map[string]any{}}}
	return r
}

// The caller decides which calls are allowed, and which tools the author sees.
func TestCode_boundToCaller(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"), Tools: files("a.hcl", scopedTools)}})
	const program = `const ends = [];
for (const what of ["it", "hers"]) {
  try { ends.push(await tools["order"]({ what })) } catch (e) { ends.push(e.name + " " + (e.code ?? "")) }
}
ends`
	for _, c := range []struct {
		who    string
		scopes []string
		sees   bool
		want   string
	}{
		{"ada", []string{"orders"}, true, `{"result":["ordered it","ordered hers"],`},
		{"bob", []string{"orders"}, true, `{"result":["ordered it","HostError POLICY_DENIED"],`},
		{"eve", []string{"other"}, false, `EXECUTION_ERROR: unknown-tool at 3:31: tools has no tool "order"`},
		{"ada", []string{"orders"}, true, `{"result":["ordered it","ordered hers"],`}, // nothing is kept from other callers
	} {
		ask := func(r call.Request) call.Result { return executeCall(t, s, withCaller(c.who, r, c.scopes...)) }
		if got := outcomeLine(ask(runCodeCall(program))); !strings.Contains(got, c.want) {
			t.Errorf("code by %s returns %s\nwant %s", c.who, got, c.want)
		}
		for what, r := range map[string]call.Request{
			"the prompt":    {Kind: call.Prompts, Name: "code_mode"},
			"a search":      tool("search_tools", `{"query":"order thing"}`),
			"a description": tool("describe_tool", `{"name":"order"}`),
		} {
			if told := strings.Contains(outcomeLine(ask(r)), "Orders a thing"); told != c.sees {
				t.Errorf("%s shows the tool to %s: %v", what, c.who, told)
			}
		}
	}
}

// Calls wait for each other if several may run, and are counted if only one may.
func TestCode_maxParallel(t *testing.T) {
	for block, most := range map[string]int32{"": 2, "  max_parallel = 1\n": 1} {
		var open, peak atomic.Int32
		both := make(chan struct{})
		s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {\n"+block+"}\n")}})
		err := engine.AddTool(s, engine.ToolOptions{Name: "work"}, func(ctx context.Context, _ identity.Agent, _ struct{}) (string, error) {
			n := open.Add(1)
			defer open.Add(-1)
			for was := peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
			}
			if most == 1 {
				for range 100 {
					runtime.Gosched() // for others, which must not start
				}
				return "", nil
			}
			if n == most {
				close(both)
			}
			select {
			case <-both:
				return "", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := map[int32]string{1: "Array.from({ length: 40 }, () => work())", 2: "[work(), work()]"}[most]
		if got := executeCall(t, s, runCodeCall("await parallel("+calls+")")); got.Err != nil || peak.Load() != most {
			t.Errorf("%q: %d calls were open at once: %s", block, peak.Load(), outcomeLine(got))
		}
	}
}

func TestCode_maxOutput(t *testing.T) {
	s := codeServer(t, "  limits {\n    output = \"4KiB\"\n  }")
	if got := outcomeLine(executeCall(t, s, runCodeCall("'x'.repeat(8192)"))); got != "EXECUTION_ERROR: the result is too large: the value is larger than 4096 bytes of JSON" {
		t.Errorf("a long result: %.300s", got)
	}
}
