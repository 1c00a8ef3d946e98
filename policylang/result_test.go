package policylang

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

func judging(expr string) Source {
	src := denying(expr)
	src.OnResult = true
	return src
}

func TestOutputsWithADefaultMayBeLeftOut(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"tier":{"type":"string","default":"gold"}}}`)
	tool := Tool{Name: "x", Schema: schema, Result: schema}
	if _, diags := newEnv(t).Compile(denying("args.tier == 'internal'"), tool); len(diags) > 0 {
		t.Errorf("an argument with a default: %v", diags)
	}
	_, diags := newEnv(t).Compile(judging("result.tier == 'internal'"), tool)
	if diff := cmp.Diff([]string{"result.tier may be left out, and then this denies the call"}, summaries(diags)); diff != "" {
		t.Error(diff)
	}
}

func summaries(diags diag.List) []string {
	var all []string
	for _, d := range diags {
		all = append(all, d.Summary)
	}
	return all
}

func TestPoliciesAboutCallsAreToldWhereResultsAre(t *testing.T) {
	for _, root := range []string{"result", "content"} {
		_, diags := newEnv(t).Compile(denying(root+" == 'x'"), refund())
		if want := `a policy with on = "result" judges what a call returns`; len(diags) != 1 || diags[0].Detail != want {
			t.Errorf("%s: %v", root, diags)
		}
	}
}

func TestMistakesAboutContentNameTheTool(t *testing.T) {
	_, diags := newEnv(t).Compile(judging("content.nope == 1"), refund())
	if len(diags) != 1 || len(diags[0].Notes) != 2 || !strings.Contains(diags[0].Notes[1].Message, `tool "refund"`) {
		t.Errorf("got %+v", diags)
	}
}

func TestResultsThatWouldBeLongToDecodeAreRefused(t *testing.T) {
	p, diags := newEnv(t).Compile(judging("result == 1 || content.size() > 1"), refund())
	if p == nil {
		t.Fatal(diags)
	}
	for name, text := range map[string]string{
		"too many elements": "[" + strings.Repeat("1,", resultTokens) + "1]",
		"too deep":          strings.Repeat("[", resultDepth+1) + strings.Repeat("]", resultDepth+1),
		"too long":          `["` + strings.Repeat("x", resultBytes) + `"]`,
	} {
		if _, err := p.Result(json.RawMessage(text)); err == nil || !strings.HasPrefix(err.Error(), "read the result: ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := p.Content(json.RawMessage(text)); err == nil || !strings.HasPrefix(err.Error(), "read the content: ") {
			t.Errorf("%s as content: %v", name, err)
		}
	}
	got, err := p.Content(json.RawMessage(`[{"type":"text","text":"\ud800"}]`))
	if diff := cmp.Diff([]any{map[string]any{"type": "text", "text": "\ufffd"}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestResult_numbersAreExact holds what a policy sees of a result against the digits that
// the client is sent.
func TestResult_numbersAreExact(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"i":{"type":"integer"},"n":{"type":"number"},"x":{}}}`)
	for _, row := range []struct {
		deny, result string
		want         Outcome
	}{
		{"result.i == 9007199254740992", `{"i":9007199254740993}`, Allow},
		{"result.i == 9007199254740993", `{"i":9007199254740993}`, Deny},
		{"result.x == 9007199254740993", `{"x":9007199254740993}`, Deny},
		{"result.x == 9007199254740992", `{"x":9007199254740993}`, Allow},
		{"result.n > 0.0", `{"n":1152921504606847000}`, Deny},
		{"result.n < 0.0", `{"n":1152921504606847000}`, Allow},
		{"result.n < 0.0", `{"n":1e300}`, Allow},
		// What CEL cannot hold denies.
		{"result.n < 0.0", `{"n":9007199254740993}`, Deny},
		{"result.i < 0", `{"i":123456789012345678901}`, Deny},
		{"result.x == 5", `{"x":123456789012345678901}`, Deny},
	} {
		p, diags := newEnv(t).Compile(judging("has(result.i) && result.i != result.i || "+row.deny), Tool{Name: "x", Schema: schema, Result: schema})
		if p == nil {
			t.Fatal(diags)
		}
		result, err := p.Result(json.RawMessage(row.result))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(t.Context(), Input{Result: result}); got.Outcome != row.want {
			t.Errorf("%s of %s: %v, want %v", row.deny, row.result, got, row.want)
		}
	}
}
