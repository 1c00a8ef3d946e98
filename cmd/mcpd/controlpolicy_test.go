package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestControl_explain(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	lead := control.As{Principal: &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com", Groups: []string{"leads"}}}
	add, pay := control.ItemName{Kind: "tool", Address: "add"}, control.ItemName{Kind: "tool", Address: "pay"}
	for _, row := range []struct {
		of         control.ExplainCall
		want, says string
	}{
		{control.ExplainCall{ItemName: add, Arguments: json.RawMessage(`{"a":1,"b":2}`)}, "allowed|", "false small allows"},
		{control.ExplainCall{ItemName: add, Arguments: json.RawMessage(`{"a":1001,"b":2}`)}, "denied|POLICY_DENIED", "true small denies: too large"},
		{control.ExplainCall{ItemName: add, Arguments: json.RawMessage(`{"a":"x"}`)}, "refused|INVALID_INPUT", "false small not reached"},
		{control.ExplainCall{ItemName: add}, "unknown|", "false small depends on unknown facts"},
		{control.ExplainCall{ItemName: pay}, "denied|POLICY_DENIED", "true leads_pay denies"},
		{control.ExplainCall{ItemName: pay, As: lead}, "allowed|", "leads_pay allows"},
		{control.ExplainCall{ItemName: control.ItemName{Kind: "template", Address: "page://{n}"}}, "allowed|", ""},
		{control.ExplainCall{ItemName: control.ItemName{Kind: "resource", Address: "page://1"}}, "allowed|", ""},
		{control.ExplainCall{ItemName: control.ItemName{Kind: "tool", Address: "nope"}}, "refused|TOOL_NOT_FOUND", ""},
	} {
		var got control.ExplainResult
		a.must(t, control.Explain, row.of, &got)
		says := ""
		for _, r := range got.Rulings {
			says += fmt.Sprintln(r.Decides, r.Name, r.Says)
			if r.Place == nil || r.Place.File != "tools.d/tools.hcl" {
				t.Errorf("%+v has no place", r)
			}
		}
		if got.Verdict+"|"+got.Code != row.want || len(got.Lines) == 0 || !strings.Contains(says, row.says) {
			t.Errorf("%+v: got %s, %s, %q, want %s, %s", row.of.ItemName, got.Verdict, got.Code, says, row.want, row.says)
		}
	}
	for want, params := range map[string]any{
		"the arguments must be a JSON object": control.ExplainCall{ItemName: add, Arguments: json.RawMessage(`[]`)},
		"unknown kind":                        control.ExplainCall{ItemName: add, As: control.As{Principal: &identity.Principal{ID: "x", Kind: "x"}}},
		"principal has the wrong type":        map[string]any{"kind": "tool", "address": "add", "principal": "ada"},
	} {
		if err := a.ask(t, control.Explain, params, &control.ExplainResult{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestControl_matrix(t *testing.T) {
	t.Parallel()
	a := startControlled(t, keysConfig, newKeys(t, new([]string), []string{"old", "--principal", "bob"}, []string{"ci", "--scopes", "crm:read"}))
	var got control.MatrixResult
	lead := identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com", Groups: []string{"leads"}}
	a.must(t, control.Matrix, control.MatrixQuery{Principals: []identity.Principal{identity.Anonymous(), lead}}, &got)
	var lines []string
	for i, item := range got.Items {
		line := item.Address
		for _, cell := range got.Cells[i] {
			line += " " + cell.Verdict + "/" + cell.Policy
		}
		lines = append(lines, line)
	}
	want := []string{"add unknown/ unknown/", "ask allowed/ allowed/", "hang allowed/ allowed/", "pay denied/leads_pay allowed/", "twice allowed/ allowed/", "page://{n} allowed/ allowed/", "greet allowed/ allowed/"}
	if diff := cmp.Diff(want, lines); diff != "" || got.Truncated {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// By default: the operator, callers since the first request for them, and keys.
	a.must(t, control.Matrix, nil, &control.MatrixResult{})
	var keys []control.Key
	a.must(t, control.Keys, nil, &keys)
	a.must(t, control.RevokeKey, keys[0].KeyName, &control.Key{})
	call := toolCall("add", `{"a":1,"b":2}`)
	call.Principal = &lead
	if result, _ := a.result(t, call); result.Code != "" {
		t.Fatalf("got %+v", result)
	}
	var known control.MatrixResult
	a.must(t, control.Matrix, nil, &known)
	var ids []string
	for _, p := range known.Principals[1:] {
		ids = append(ids, string(p.Kind)+" "+p.ID)
	}
	if diff := cmp.Diff([]string{"jwt ada", "key ci"}, ids); diff != "" || known.Principals[0].Kind != identity.KindLocal {
		t.Errorf("(-want +got)\n%s\nof %+v", diff, known.Principals)
	}
	many := make([]identity.Principal, matrixPrincipals+1)
	for i := range many {
		many[i] = identity.Principal{ID: fmt.Sprint(i), Kind: identity.KindKey}
	}
	a.must(t, control.Matrix, control.MatrixQuery{Principals: many}, &got)
	if !got.Truncated || len(got.Principals) != matrixPrincipals || len(got.Cells[0]) != matrixPrincipals {
		t.Errorf("got %d principals", len(got.Principals))
	}
}

// BenchmarkMatrix fills the largest matrix: 1,000 tools for 16 principals, with two policies each.
func BenchmarkMatrix(b *testing.B) {
	var text strings.Builder
	for i := range matrixItems + 1 {
		fmt.Fprintf(&text, "tool \"t%04d\" {\n  input \"n\" { type = number }\n  run = \"return input.n;\"\n}\n", i)
	}
	text.WriteString("policy \"a\" {\n  deny = \"args.n > 7\"\n  reason = \"r\"\n}\npolicy \"b\" {\n  deny = \"'x' in principal.groups\"\n  reason = \"r\"\n}\n")
	dir := b.TempDir()
	save(b, filepath.Join(dir, "t.hcl"), text.String())
	s, err := engine.New(engine.Options{Name: "b", Files: engine.Files{Tools: engine.Dir(dir)}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	if _, err := s.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	o := &runningServer{server: s}
	query := control.MatrixQuery{Principals: make([]identity.Principal, matrixPrincipals)}
	for i := range query.Principals {
		query.Principals[i] = identity.Principal{ID: fmt.Sprint(i), Kind: identity.KindKey}
	}
	for b.Loop() {
		row, err := o.matrix(b.Context(), query)
		if got, ok := row.(control.MatrixResult); err != nil || !ok || len(got.Cells) != matrixItems || !got.Truncated {
			b.Fatal(err)
		}
	}
}
