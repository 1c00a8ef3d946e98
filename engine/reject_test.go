package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// closedOutcomes closes the server and returns the outcomes in its log, with parts separated by spaces.
func closedOutcomes(t *testing.T, s *engine.Server, path string) []string {
	t.Helper()
	var outcomes []string
	for _, l := range outcomesOf(t, s, path) {
		outcomes = append(outcomes, fmt.Sprint(l.Depth, " ", l.Outcome, " ", l.Declined))
	}
	return outcomes
}

// A rejected call has hook events and an audit record, unless a policy denies it first. Nothing
// runs.
func TestReject_hooksAndAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var phases []call.Phase
	s := unloaded(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", auditBlock(path, "  mode = \"strict\"\n")),
			Tools: files("t.hcl", `
policy "closed" {
  tools  = ["closed"]
  deny   = "true"
  reason = "Closed"
}
`),
		},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) { phases = append(phases, e.Phase) }},
	})
	for _, name := range []string{"open", "closed"} {
		goTool(t, s, name, func(context.Context) (string, error) {
			t.Errorf("%s runs", name)
			return "", nil
		})
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "closed", "none"} {
		r := toolCall(name, `{}`)
		r.RejectErr = &call.Error{Code: call.ExecutionError, Message: "no room"}
		s.Execute(t.Context(), r)
	}
	if diff := cmp.Diff([]string{"0 EXECUTION_ERROR true", "0 POLICY_DENIED false", "0 TOOL_NOT_FOUND false"}, closedOutcomes(t, s, path)); diff != "" {
		t.Errorf("the log (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]call.Phase{call.Start, call.Failed, call.Start, call.Failed, call.Start, call.Failed}, phases); diff != "" {
		t.Errorf("the hooks (-want +got)\n%s", diff)
	}
}

// The rejected call is audited.
func TestNested_auditTooDeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", auditBlock(path, "")),
			Tools: files("outer.hcl", caller(`
    if (call.depth < 8) return await tools.outer();
    return await tools.outer().catch(() => "refused");`)),
		},
	})
	wantValue(t, s, call.Request{Name: "outer"}, `"refused"`)
	want := []string{"9 EXECUTION_ERROR true"}
	for depth := 8; depth >= 0; depth-- {
		want = append(want, fmt.Sprint(depth, " ok false"))
	}
	if diff := cmp.Diff(want, closedOutcomes(t, s, path)); diff != "" {
		t.Errorf("the log (-want +got)\n%s", diff)
	}
}

// Running calls and the queued call are audited. The queued call is rejected, unless it starts just
// then.
func TestNested_auditCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		s := unloaded(t, engine.Options{
			Files: engine.Files{
				Config: files("mcpd.hcl", auditBlock(path, "")),
				Tools:  files("outer.hcl", caller(`await Promise.all(Array.from({ length: 9 }, () => tools.waits()));`)),
			},
		})
		goTool(t, s, "waits", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait() // eight calls run, and the ninth waits
			cancel()
		}()
		s.Execute(ctx, toolCall("outer", `{}`))
		synctest.Wait() // the call does not wait for nested calls
		nested := 0
		all := closedOutcomes(t, s, path)
		for _, outcome := range all {
			if strings.HasPrefix(outcome, "1 EXECUTION_ERROR ") {
				nested++
			}
		}
		if nested != 9 {
			t.Errorf("the log has %d nested calls: %q", nested, all)
		}
	})
}
