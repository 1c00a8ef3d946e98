package policylang

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the heaps are small, and collecting them takes a quarter of the processor time
	os.Exit(m.Run())
}

const (
	varsSchema = `{"type":"object","additionalProperties":false,"properties":{
		"stage":{"type":"string"},"ceiling":{"type":"number"},"retries":{"type":"integer"},"hosts":{"type":"array","items":{"type":"string"}}}}`
	varsValues = `{"stage":"prod","ceiling":5000,"retries":3,"hosts":["a.example","b.example"]}`

	refundSchema = `{"type":"object","additionalProperties":false,
		"required":["amount","cents","status","tags","amounts","any","filters","labels"],
		"properties":{
			"amount":{"type":"number"},
			"cents":{"type":"integer"},
			"count":{"type":"integer","default":3},
			"note":{"type":"string"},
			"status":{"type":"string","enum":["active","suspended"]},
			"maybe":{"type":["string","null"],"default":null},
			"quota":{"type":["number","null"],"default":null},
			"tags":{"type":"array","items":{"type":"string"}},
			"amounts":{"type":"array","items":{"type":"number"}},
			"any":{},
			"filters":{"type":"object","additionalProperties":false,"required":["status"],"properties":{
				"status":{"type":"string"},
				"deep":{"type":"object","additionalProperties":false,"required":["x"],"properties":{"x":{"type":"integer"}}}}},
			"labels":{"type":"object","additionalProperties":{"type":"string"}},
			"content-type":{"type":"string","default":"text"}
		}}`
)

func refund() Tool {
	return Tool{
		Name: "refund", Schema: json.RawMessage(refundSchema),
		Range: diag.Range{File: "tools.d/refund.hcl", Start: diag.Pos{Line: 1, Column: 1}, End: diag.Pos{Line: 1, Column: 14, Byte: 13}},
	}
}

// smallRefund is refund with bounded lengths, so that every expression is cheap enough.
func smallRefund() Tool {
	tool := refund()
	tool.Schema = json.RawMessage(strings.NewReplacer(
		`{"type":"string"`, `{"maxLength":20,"type":"string"`, `"type":"array"`, `"type":"array","maxItems":5`,
	).Replace(refundSchema))
	return tool
}

func refundInput() Input {
	return Input{
		Caller: identity.Caller{
			Principal: identity.Principal{
				ID: "ada", Kind: "oauth", Scopes: []string{"crm:read", "admin"}, Groups: []string{"leads"},
				Claims: map[string]any{"tenant": "acme", "limit": 3.0, "roles": []any{"clerk", "lead"}, "nested": map[string]any{"b": 1.0, "a": 2.0}},
			},
			Agent:  identity.Agent{AgentID: "bot", RequestID: "r-1", Metadata: map[string]string{"team": "crm"}},
			Source: identity.Source{IP: "10.1.2.3", Listener: "127.0.0.1:8080"},
		},
		Tool: ToolFacts{Name: "refund", Title: "Refund", Labels: map[string]string{"tier": "gold"}, Idempotent: true, Destructive: true},
		Args: map[string]any{
			"amount": 50.0, "cents": int64(700), "count": int64(3), "status": "active", "maybe": nil, "quota": 2.0,
			"tags": []any{"new", "vip"}, "amounts": []any{1.0, 5.0}, "any": 2.5,
			"filters": map[string]any{"status": "open"}, "labels": map[string]any{"b": "2", "a": "1"}, "content-type": "text",
		},
		Call: CallFacts{ID: "c-1", Via: "client"},
		Now:  time.Date(2026, 3, 1, 22, 30, 0, 0, time.UTC),
	}
}

func newEnv(tb testing.TB) *Env {
	tb.Helper()
	e, err := NewEnv(json.RawMessage(varsSchema), json.RawMessage(varsValues))
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// inFile returns an expression on line 3 of a file.
func inFile(expr string) *diag.Text {
	text := diag.NewText("policies.hcl", expr, diag.Pos{Line: 3, Column: 12, Byte: 40})
	return &text
}

func policySource() Source {
	return Source{
		Name: "p", Reason: "no",
		Range: diag.Range{File: "policies.hcl", Start: diag.Pos{Line: 1, Column: 1}, End: diag.Pos{Line: 1, Column: 11, Byte: 10}},
	}
}

func mustCompile(tb testing.TB, e *Env, src Source) *Policy {
	tb.Helper()
	p, diags := e.Compile(src, refund())
	if p == nil {
		tb.Fatal(diags)
	}
	return p
}

func allowing(expr string) Source {
	src := policySource()
	src.Allow = inFile(expr)
	return src
}

func denying(expr string) Source {
	src := policySource()
	src.Deny = inFile(expr)
	return src
}
