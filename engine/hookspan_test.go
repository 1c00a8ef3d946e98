package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
)

// tellingHooks are a hook that calls a site, and one that fails.
const tellingHooks = `
hook "tells" {
  on = ["end"]
  allow {
    http "api" {
      hosts            = [%q]
      private_networks = true
    }
    module "who" {}
  }
  run = <<JS
    await modules.who.am_i({});
    log.info('a hook tells');
    await http.api.get('%s/');
  JS
}
hook "fails" {
  on  = ["end"]
  run = "throw new Error('no');"
}
`

// A hook run belongs to the trace of its call, even after the call has ended. So do its host calls,
// and the log has the ids of the call, the request and the trace. The run has no caller for
// modules.
func TestHook_span(t *testing.T) {
	carried := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carried <- r.Header.Get("Traceparent") }))
	defer api.Close()
	var runsFor identity.Caller
	var console bytes.Buffer
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: log.logger(), Extensions: []engine.Extension{telemetry.New(telemetry.Options{Console: &console})}, Files: engine.Files{
			LookupEnv: onConsole,
			Tools:     files("t.hcl", addTool+fmt.Sprintf(tellingHooks, strings.TrimPrefix(api.URL, "http://"), api.URL)),
		},
		Scripts: engine.Scripts{Modules: []engine.HostModule{{Name: "who", Functions: []engine.HostFunc{
			engine.NewHostFunc("am_i", func(_ context.Context, call engine.HostCall, _ struct{}) (bool, error) {
				runsFor = call.Caller
				return true, nil
			}),
		}}}},
	})
	answer := s.Execute(t.Context(), call.Request{
		Name: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`),
		Caller: identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindKey}, Agent: identity.Agent{AgentID: "bot", RequestID: "r-7"}},
	})
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{`mcpd_host_calls_total{operation="http",outcome="ok"} 1`, `mcpd_hook_failures_total 1`} {
		if text := metricsOf(s); !strings.Contains(text, series+"\n") {
			t.Errorf("the metrics lack %s", series)
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	spans := map[string]span{}
	for _, s := range spansOf(t, &console) {
		spans[s.Name] = s
	}
	call := spans["tools/call add"]
	wantParts(t, spans)
	close(carried) // the hook has ended
	if got, want := <-carried, "00-"+call.Trace+"-"+spans["http.request"].ID+"-01"; got != want {
		t.Errorf("the request of the hook carries %q, want %q", got, want)
	}
	if runsFor.Principal.ID != "" || runsFor.Agent.AgentID != "" {
		t.Errorf("the hook runs for %+v", runsFor)
	}
	for said, by := range map[string]string{"a hook tells": "hook tells", "hook failed": "hook fails"} {
		line := lineOf(log.String(), said)
		for _, id := range []string{"call_id=" + answer.CallID, "request_id=r-7", "trace_id=" + call.Trace, "span_id=" + spans[by].ID} {
			if !strings.Contains(line, id) {
				t.Errorf("%q lacks %s", line, id)
			}
		}
	}
}

// wantParts checks that the spans of tellingHooks are children of the span of their call.
func wantParts(t *testing.T, spans map[string]span) {
	t.Helper()
	call := spans["tools/call add"]
	for name, parent := range map[string]span{"hook tells": call, "hook fails": call, "module": spans["hook tells"], "http.request": spans["hook tells"]} {
		if got := spans[name]; got.Trace != call.Trace || got.Parent != parent.ID || got.Parent == "" {
			t.Errorf("%s is %+v, want a part of %+v", name, got, parent)
		}
	}
	if diff := cmp.Diff(map[string]any{"error.type": "EXECUTION_ERROR"}, spans["hook fails"].Attributes); diff != "" {
		t.Errorf("the hook that fails (-want +got)\n%s", diff)
	}
}
