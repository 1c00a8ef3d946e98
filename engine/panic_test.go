package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

// panicking is an emitter and an executor with methods that panic.
type panicking struct{ scripting.Executor }

func (panicking) Progress(float64, *float64, string)  { panic("hunter2") }
func (panicking) Log(string, string, json.RawMessage) { panic("hunter2") }
func (panicking) CloseStream()                        { panic("hunter2") }
func (panicking) Run(context.Context, scripting.Call, scripting.Host) (scripting.Outcome, error) {
	panic("hunter2")
}

func TestExecute_panic(t *testing.T) {
	const tools = `
tool "tells" {
  run = <<JS
    progress(1, 2, "half");
    return "told";
  JS
}
tool "logs" {
  run = <<JS
    log.info("told");
    return "told";
  JS
}
`
	for name, test := range map[string]struct {
		tool     string
		executor scripting.Executor
		emit     call.Emitter
	}{
		"an emitter of progress": {tool: "tells", emit: panicking{}},
		"an emitter of logs":     {tool: "logs", emit: panicking{}},
		"an executor":            {tool: "tells", executor: panicking{scripting.Inline()}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen recorder
			s := server(t, engine.Options{Files: engine.Files{Tools: files("tools.hcl", tools)}, Scripts: engine.Scripts{Executor: test.executor}, Hooks: []engine.Hook{seen.hook}})
			result := s.Execute(t.Context(), call.Request{Name: test.tool, Caller: identity.Caller{Principal: identity.Anonymous()}, Emit: test.emit})
			if result.Err == nil || result.Err.Code != call.ExecutionError {
				t.Errorf("got %s, %v", result.Value, result.Err)
			}
			if diff := cmp.Diff([]string{"start " + test.tool, "error " + test.tool + " EXECUTION_ERROR"}, seen.events); diff != "" {
				t.Errorf("hooks (-want +got)\n%s", diff)
			}
			if result.Err != nil && strings.Contains(result.Err.Message, "hunter2") {
				t.Errorf("the caller gets %q", result.Err.Message)
			}
		})
	}
}
