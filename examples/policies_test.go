package examples_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestPolicies_testBlocks(t *testing.T) {
	passes(t, stage(t, "dev"), 4)
}

func TestStage(t *testing.T) {
	const read, write = "get_customer", "set_customer_status"
	stranger, admin := identity.Anonymous(), identity.Anonymous()
	admin.ID, admin.Scopes = "ops", []string{"admin"}
	for _, test := range []struct {
		name, stage, tool string
		who               identity.Principal
		want              string
	}{
		{"in dev a stranger may write", "dev", write, stranger, `{"customer_id":"C-1042","before":"active","after":"suspended"}`},
		{"in prod a stranger may read", "prod", read, stranger, `{"customer_id":"C-1042","status":"active"}`},
		{"in prod a stranger may not write", "prod", write, stranger, "POLICY_DENIED: Blocked in prod"},
		{"in prod an admin may write", "prod", write, admin, `{"customer_id":"C-1042","before":"active","after":"suspended"}`},
		{"a stranger finds no admin tools", "dev", "admin_export", stranger, `TOOL_NOT_FOUND: no tool named "admin_export"`},
		{"an admin does", "prod", "admin_export", admin, `{"customer_ids":["C-1042","C-1043"]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := executeAs(t.Context(), stage(t, test.stage), test.tool, test.who)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestList_hidesDenied(t *testing.T) {
	visible := stage(t, "prod").Visible(t.Context(), call.Tools, identity.Caller{Principal: identity.Anonymous()})
	var names []string
	for _, tool := range visible.Tools {
		names = append(names, tool.Name())
	}
	if diff := cmp.Diff([]string{"get_customer"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// stage returns a server of the example in a stage.
func stage(t *testing.T, name string) *engine.Server {
	t.Helper()
	return load(t, "policies", engine.Options{Files: engine.Files{Vars: map[string]engine.VarValue{"stage": {Text: name, Origin: "the test"}}}})
}

// executeAs returns the result, or the error as the caller sees it.
func executeAs(ctx context.Context, server *engine.Server, tool string, who identity.Principal) string {
	arguments := map[string]json.RawMessage{
		"get_customer":        json.RawMessage(`{"customer_id":"C-1042"}`),
		"set_customer_status": json.RawMessage(`{"customer_id":"C-1042","status":"suspended"}`),
	}
	result := server.Execute(ctx, call.Request{
		Name: tool, Arguments: arguments[tool], Caller: identity.Caller{Principal: who},
	})
	if result.Err != nil {
		return string(result.Err.Code) + ": " + result.Err.Message
	}
	return string(result.Value)
}
