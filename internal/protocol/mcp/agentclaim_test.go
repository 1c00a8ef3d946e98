package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

func TestClaimOf_message(t *testing.T) {
	many := map[string]string{}
	for i := range identity.MetadataEntries + 1 {
		many[fmt.Sprint(i)] = ""
	}
	tooMany, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, raw string
		want      mcp.AgentClaim
		path      string // the invalid path; empty if the claim is valid
	}{
		{"nothing", ``, mcp.AgentClaim{}, ""},
		{"null", `null`, mcp.AgentClaim{}, ""},
		{"an empty object", `{}`, mcp.AgentClaim{}, ""},
		{
			"everything", `{"agent_id":"a","model":"m","request_id":"r","metadata":{"k":"v","\u0061":"\n"}}`,
			mcp.AgentClaim{AgentID: "a", Model: "m", RequestID: "r", Metadata: map[string]string{"k": "v", "a": "\n"}}, "",
		},
		{"null members", `{"agent_id":null,"model":null,"metadata":null}`, mcp.AgentClaim{}, ""},
		{"not an object", `"a"`, mcp.AgentClaim{}, "agent"},
		{"unknown member", `{"agentId":"a"}`, mcp.AgentClaim{}, "agent.agentId"},
		{"numeric id", `{"agent_id":1}`, mcp.AgentClaim{}, "agent.agent_id"},
		{"metadata is a string", `{"metadata":"x"}`, mcp.AgentClaim{}, "agent.metadata"},
		{"number in metadata", `{"metadata":{"a":1}}`, mcp.AgentClaim{}, "agent.metadata"},
		{"too many entries", `{"metadata":` + string(tooMany) + `}`, mcp.AgentClaim{}, "agent.metadata"},
		{"entry too large", `{"metadata":{"a":"` + strings.Repeat("x", identity.MetadataBytes) + `"}}`, mcp.AgentClaim{}, "agent.metadata"},
		{"id too long", `{"agent_id":"` + strings.Repeat("x", 300) + `"}`, mcp.AgentClaim{}, "agent.agent_id"},
		{"line break in id", `{"agent_id":"a\nb"}`, mcp.AgentClaim{}, "agent.agent_id"},
		{"request id not ASCII", `{"request_id":"ü"}`, mcp.AgentClaim{}, "agent.request_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := mcp.ClaimOf(json.RawMessage(test.raw), mcp.AgentClaim{})
			checkClaim(t, got, err, test.want, test.path)
		})
	}
}

func TestAgentFromHeaders(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		want   mcp.AgentClaim
		path   string
	}{
		{"none", http.Header{"Accept": {"*/*"}, "X-Agent": {"a"}, "X-Agent-Meta-": {"b"}, "X": {"c"}}, mcp.AgentClaim{}, ""},
		{
			"all", http.Header{"X-Agent-Id": {"a"}, "X-Agent-Model": {"m"}, "X-Request-Id": {"r"}, "X-Agent-Meta-Cost-Center": {"7"}},
			mcp.AgentClaim{AgentID: "a", Model: "m", RequestID: "r", Metadata: map[string]string{"cost-center": "7"}}, "",
		},
		{"repeated header", http.Header{"X-Agent-Id": {"a", "a"}}, mcp.AgentClaim{}, "header X-Agent-Id"},
		{"invalid UTF-8", http.Header{"X-Agent-Model": {"\xff"}}, mcp.AgentClaim{}, "header X-Agent-Model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := mcp.AgentFromHeaders(test.header)
			checkClaim(t, got, err, test.want, test.path)
		})
	}
}

func TestClaimOf_mergesHeaders(t *testing.T) {
	body := mcp.AgentClaim{AgentID: "a", Metadata: map[string]string{"k": "v"}}
	for _, test := range []struct {
		name    string
		headers mcp.AgentClaim
		want    mcp.AgentClaim
		path    string
	}{
		{"no headers", mcp.AgentClaim{}, body, ""},
		{
			"fields of headers only",
			mcp.AgentClaim{Model: "m", RequestID: "r", Metadata: map[string]string{"l": "w"}},
			mcp.AgentClaim{AgentID: "a", Model: "m", RequestID: "r", Metadata: map[string]string{"k": "v", "l": "w"}}, "",
		},
		{"equal claims", mcp.AgentClaim{AgentID: "a", Metadata: map[string]string{"k": "v"}}, body, ""},
		{"other id", mcp.AgentClaim{AgentID: "b"}, mcp.AgentClaim{}, "agent.agent_id"},
		{"other metadata value", mcp.AgentClaim{Metadata: map[string]string{"k": "w"}}, mcp.AgentClaim{}, "agent.metadata"},
		{
			"merged metadata too large",
			mcp.AgentClaim{Metadata: map[string]string{"l": strings.Repeat("x", identity.MetadataBytes-2)}},
			mcp.AgentClaim{}, "agent.metadata",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := mcp.ClaimOf(json.RawMessage(`{"agent_id":"a","metadata":{"k":"v"}}`), test.headers)
			checkClaim(t, got, err, test.want, test.path)
		})
	}
}

func TestAgentClaim_defaults(t *testing.T) {
	a, b := new(mcp.AgentClaim).Agent(), new(mcp.AgentClaim).Agent()
	if a.AgentID != identity.AnonymousAgent || len(a.Metadata) != 0 || a.Verified {
		t.Errorf("agent = %+v", a)
	}
	if a.RequestID == "" || a.RequestID == b.RequestID {
		t.Errorf("request ids %q and %q", a.RequestID, b.RequestID)
	}
	if r := (&mcp.AgentClaim{RequestID: "r"}).Agent().RequestID; r != "r" {
		t.Errorf("request id = %q", r)
	}
}

// checkClaim compares a claim, and checks that an error follows the rules for
// INVALID_INPUT: it names the path, and its details are JSON.
func checkClaim(t *testing.T, got mcp.AgentClaim, refused *call.Error, want mcp.AgentClaim, path string) {
	t.Helper()
	if path == "" {
		if refused != nil {
			t.Fatal(refused)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		return
	}
	if refused == nil || refused.Code != call.InvalidInput {
		t.Fatalf("the error is %v", refused)
	}
	if v := refused.Violations; len(v) != 1 || v[0].Path != path || v[0].Message == "" {
		t.Errorf("the violations are %v, want the path %s", v, path)
	}
	if !strings.HasPrefix(refused.Message, path+" ") {
		t.Errorf("the message is %q", refused.Message)
	}
}
