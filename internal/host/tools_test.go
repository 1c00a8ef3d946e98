package host_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/scripting"
)

// desk implements all tools: each returns its arguments.
type desk struct{}

func (desk) CallTool(_ context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"tool": name, "arguments": arguments})
}

func TestCallTool_grant(t *testing.T) {
	l := newLab(t)
	for _, test := range []struct{ payload, want string }{
		{`{"tool":"crm_get"}`, scripting.NotGranted},
		{`{"tool":""}`, scripting.NotGranted},
		{`{}`, scripting.NotGranted},
	} {
		if got := l.do(t, "call", test.payload); got != test.want {
			t.Errorf("without a grant, %s: %s, want %s", test.payload, got, test.want)
		}
	}
	l.CallableTools = []string{"crm_*", "audit"}
	if got := l.do(t, "call", `{"tool":"audit"}`); got != scripting.NotGranted {
		t.Errorf("without tools: %s", got)
	}
	l.Tools = desk{}
	for _, test := range []struct{ payload, want string }{
		{`{"tool":"crm_get","arguments":{"id":1}}`, `{"arguments":{"id":1},"tool":"crm_get"}`},
		{`{"tool":"audit"}`, `{"arguments":null,"tool":"audit"}`},
		{`{"tool":"audits"}`, scripting.NotGranted},
		{`{"tool":"crm"}`, scripting.NotGranted},
		{`{"tool":["audit"]}`, scripting.Invalid},
		{`no JSON`, scripting.Invalid},
	} {
		if got := l.do(t, "call", test.payload); got != test.want {
			t.Errorf("%s: %s, want %s", test.payload, got, test.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Do(ended, 1, "call", []byte(`{"tool":"audit"}`)); err == nil {
		t.Error("a call that has ended calls a tool")
	}
}

func TestMocks_tools(t *testing.T) {
	l := newLab(t)
	l.CallableTools, l.Tools = []string{"*"}, desk{}
	l.Mocks = host.NewMocks([]host.Mock{
		{Object: "tools", Request: "crm_get", Body: []byte(`{"id":7}`)},
		{Object: "tools", Request: "crm_put", Error: "POLICY_DENIED"},
	})
	for _, test := range []struct{ payload, want string }{
		{`{"tool":"crm_get"}`, `{"id":7}`},
		{`{"tool":"crm_put"}`, "POLICY_DENIED"},
		{`{"tool":"other"}`, scripting.Unavailable},
		{`{"tool":"other","arguments":{}}`, scripting.Unavailable},
	} {
		if got := l.do(t, "call", test.payload); got != test.want {
			t.Errorf("%s: %s, want %s", test.payload, got, test.want)
		}
	}
	if diff := cmp.Diff([]string{"tools crm_get", "tools crm_put", "tools other", "tools other"}, l.Mocks.Calls()); diff != "" {
		t.Errorf("calls (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mock \"tools\" \"other\" {\n  json = {}\n}"}, l.Mocks.Missing()); diff != "" {
		t.Errorf("missing (-want +got)\n%s", diff)
	}
}
