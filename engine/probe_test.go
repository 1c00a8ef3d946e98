package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

// probeExecutor is an executor with a configurable response to probes.
type probeExecutor struct {
	scripting.Executor
	probe func(context.Context) (scripting.Outcome, error)
}

func (o probeExecutor) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	if c.Program.Name() == "probe" {
		return o.probe(ctx)
	}
	return o.Executor.Run(ctx, c, h)
}

const probedTool = `tool "one" { run = "return 1;" }`

func TestProbe_alive(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", probedTool)}})
	if err := s.Probe(t.Context()); err == nil || err.Error() != "probe: the server has no items" {
		t.Errorf("before it is loaded: %v", err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if calls := s.Status().Calls; calls != 0 {
		t.Errorf("a probe counts as %d calls", calls)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("while draining: %v", err)
	}
}

func TestProbe_stuck(t *testing.T) {
	var s *engine.Server
	hangs := func(ctx context.Context) (scripting.Outcome, error) {
		<-ctx.Done()
		return scripting.Outcome{}, ctx.Err()
	}
	for name, r := range map[string]struct {
		probe func(context.Context) (scripting.Outcome, error)
		want  string
	}{
		"it hangs": {hangs, "probe: context canceled"},
		"it hangs while calls end": {func(ctx context.Context) (scripting.Outcome, error) {
			s.Execute(context.Background(), call.Request{Name: "one", Arguments: json.RawMessage(`{}`), Caller: identity.Caller{Principal: identity.Anonymous()}})
			return hangs(ctx)
		}, ""},
		"it is overloaded": {func(context.Context) (scripting.Outcome, error) {
			return scripting.Outcome{}, scripting.ErrOverloaded
		}, ""},
		"it has no process": {func(context.Context) (scripting.Outcome, error) {
			return scripting.Outcome{}, errors.New("no process can be started")
		}, "probe: no process can be started"},
		"its script fails": {func(context.Context) (scripting.Outcome, error) {
			return scripting.Outcome{Failure: &scripting.Failure{Message: "the process died"}}, nil
		}, "probe: the empty script failed: the process died"},
		"its script has no result": {func(context.Context) (scripting.Outcome, error) { return scripting.Outcome{}, nil }, "probe: the empty script has no result"},
	} {
		s = server(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", probedTool)}, Scripts: engine.Scripts{Executor: probeExecutor{scripting.Inline(), r.probe}}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := ""
		if err := s.Probe(ctx); err != nil {
			got = err.Error()
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", name, got, r.want)
		}
	}
}
