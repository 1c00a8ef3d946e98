package tooltest

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestParallel_panics(t *testing.T) {
	var ran atomic.Int64
	defer func() {
		if cause, _ := recover().(string); !strings.Contains(cause, "broken") || ran.Load() < 1 {
			t.Errorf("the panic is %q after %d runs", cause, ran.Load())
		}
	}()
	Parallel(20, 2, func(i int) {
		if i == 3 {
			panic("broken")
		}
		ran.Add(1)
	})
	t.Error("no panic")
}

func TestJudge_passes(t *testing.T) {
	text := "hello"
	for _, test := range []struct {
		name string
		want definition.Expect
		got  Outcome
	}{
		{"completion values", definition.Expect{Values: []string{"a"}}, Outcome{Reply: []byte(`{"completion":{"values":["a"]}}`)}},
		{"empty completion", definition.Expect{Values: []string{}}, Outcome{Reply: []byte(`{"completion":{"values":[]}}`)}},
		{"success only", definition.Expect{}, Outcome{Value: []byte(`1`)}},
		{
			"the order of members and the spelling of numbers do not matter",
			definition.Expect{Output: []byte(`{"a":1,"b":[2]}`)}, Outcome{Value: []byte(`{ "b": [2.0], "a": 1 }`)},
		},
		{
			"the text is that of the text blocks", definition.Expect{Text: &text},
			Outcome{Value: []byte(`null`), Content: []byte(`[{"type":"image","data":""},{"type":"text","text":"hello"}]`)},
		},
		{
			"an error by its code and a part of its message", definition.Expect{Error: "INVALID_INPUT", MessageMatches: "^/id .* required$"},
			Outcome{Code: "INVALID_INPUT", Message: "/id is required"},
		},
		{
			"a denial by its policy", definition.Expect{DeniedBy: "prod"},
			Outcome{Code: "POLICY_DENIED", Message: "no", DeniedBy: "prod"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if failures := Judge(&test.want, test.got, host.NewMocks(nil)); failures != nil {
				t.Errorf("failures %q", failures)
			}
		})
	}
}

func TestJudge_failures(t *testing.T) {
	text := "hello"
	good := Outcome{Value: []byte(`{"a":1}`), Content: []byte(`[{"type":"text","text":"bye"}]`)}
	denied := Outcome{Code: "POLICY_DENIED", Message: "closed", DeniedBy: "night"}
	for _, test := range []struct {
		name string
		want definition.Expect
		got  Outcome
		said []string
	}{
		{"wrong output", definition.Expect{Output: []byte(`{"a":2}`)}, good, []string{"the output is\n  {\n    \"a\": 1\n  }\nwant\n  {\n    \"a\": 2\n  }"}},
		{"wrong text", definition.Expect{Text: &text}, good, []string{`the text is "bye", want "hello"`}},
		{"success instead of error", definition.Expect{Error: "TIMEOUT"}, good, []string{`the call succeeded with {"a":1}, want an error`}},
		{"success instead of denial", definition.Expect{DeniedBy: "night"}, good, []string{`the call succeeded with {"a":1}, want an error`}},
		{"error instead of success", definition.Expect{Text: &text}, denied, []string{"the call failed with POLICY_DENIED: closed\n(policy \"night\")"}},
		{
			"a script that throws where success is wanted", definition.Expect{},
			Outcome{Code: "EXECUTION_ERROR", Message: "boom", Cause: errors.New("boom\n    at f (a.hcl:1:2)\n    at body (a.hcl:3:4)")},
			[]string{"the call failed with EXECUTION_ERROR: boom\nat f (a.hcl:1:2)\nat body (a.hcl:3:4)"},
		},
		{
			"a policy that fails where success is wanted", definition.Expect{},
			Outcome{Code: "POLICY_DENIED", Message: "denied by policy", DeniedBy: "night", Cause: errors.New("a.hcl:1:2: no such key")},
			[]string{"the call failed with POLICY_DENIED: denied by policy\n(policy \"night\")\na.hcl:1:2: no such key"},
		},
		{
			"a cause that is the message", definition.Expect{},
			Outcome{Code: "EXECUTION_ERROR", Message: "boom", Cause: errors.New("boom")},
			[]string{"the call failed with EXECUTION_ERROR: boom"},
		},
		{"wrong error", definition.Expect{Error: "TIMEOUT"}, denied, []string{"the error is POLICY_DENIED (closed), want TIMEOUT"}},
		{"wrong policy", definition.Expect{DeniedBy: "day"}, denied, []string{`the call was denied by policy "night", want "day"`}},
		{
			"everything at once", definition.Expect{Error: "TIMEOUT", DeniedBy: "day", MessageMatches: "open"}, denied,
			[]string{
				"the error is POLICY_DENIED (closed), want TIMEOUT",
				`the call was denied by policy "night", want "day"`,
				`the message "closed" does not match "open"`,
			},
		},
		{
			"other values of a completion", definition.Expect{Values: []string{"a"}}, Outcome{Reply: []byte(`{"completion":{"values":["a","b"]}}`)},
			[]string{`the values are ["a" "b"], want ["a"]`},
		},
		{
			"host calls that were not made", definition.Expect{Calls: []string{"http.crm GET /a"}}, good,
			[]string{"the host calls were [], want [http.crm GET /a]"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.said, Judge(&test.want, test.got, host.NewMocks(nil))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCaller_anonymous(t *testing.T) {
	want := identity.Caller{
		Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}, Source: identity.Source{Listener: "local", Session: "test"},
	}
	if diff := cmp.Diff(want, Caller(&definition.Test{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCaller_named(t *testing.T) {
	want := identity.Caller{
		Principal: identity.Principal{
			ID: "ada", Kind: identity.KindLocal, Scopes: []string{"write"}, Groups: []string{"ops"},
			Claims: map[string]any{"level": 3.0},
		},
		Agent:  identity.Agent{AgentID: "bot", Model: "m-1", Metadata: map[string]string{"team": "qa"}},
		Source: identity.Source{Listener: "local", Session: "test"},
	}
	got := Caller(&definition.Test{
		Principal: &definition.TestPrincipal{ID: "ada", Kind: "local", Scopes: []string{"write"}, Groups: []string{"ops"}, Claims: []byte(`{"level":3}`)},
		Agent:     &definition.TestAgent{ID: "bot", Model: "m-1", Metadata: map[string]string{"team": "qa"}},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A long value is written on several lines. Members keep their order, and strings cannot become
// expressions.
func TestValueHCL(t *testing.T) {
	for raw, want := range map[string]string{
		`null`:                         `null`,
		`true`:                         `true`,
		`-1.50e+3`:                     `-1.50e+3`,
		`12345678901234567890`:         `12345678901234567890`,
		`"${a} %{b} $${c} 100% $"`:     `"$${a} %%{b} $$${c} 100% $"`,
		`"a\"b\\c\n\r\t\u0007\u202e😀"`: `"a\"b\\c\n\r\t\u0007\u202e😀"`,
		`[]`:                           `[]`,
		`{}`:                           `{}`,
		`{"b":1,"a":[1,2],"odd key":{"for":null,"x-y":1}}`:                                                      `{ b = 1, a = [1, 2], "odd key" = { "for" = null, "x-y" = 1 } }`,
		`{"long":"0123456789012345678901234567890123456789012345678901234567890","list":[1],"no":[],"none":{}}`: "{\nlong = \"0123456789012345678901234567890123456789012345678901234567890\"\nlist = [\n1,\n]\nno = []\nnone = {}\n}",
		`{`: `null`,
	} {
		if diff := cmp.Diff(want, valueHCL(json.RawMessage(raw), nil)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", raw, diff)
		}
	}
}

// A block has what differs from the caller that tests have by default.
func TestRecording_caller(t *testing.T) {
	key := identity.Principal{ID: "ada", Kind: identity.KindKey, Scopes: []string{}, Groups: []string{"leads"}, Claims: map[string]any{"${x}": "secret"}}
	bot := identity.Agent{AgentID: "bot", Model: "m", Metadata: map[string]string{"a": "b"}, Verified: true, RequestID: "r"}
	for name, row := range map[string]struct {
		caller identity.Caller
		want   string
	}{
		"anonymous": {identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}, Source: identity.Source{Listener: "local"}}, ""},
		"key":       {identity.Caller{Principal: key}, "  principal = {\nid = \"ada\"\nkind = \"key\"\ngroups = [\n\"leads\",\n]\nclaims = {\n\"$${x}\" = \"hidden\"\n}\n}\n"},
		"agent":     {identity.Caller{Principal: identity.Anonymous(), Agent: bot, Source: identity.Source{Listener: "console"}}, "  agent = {\nagent_id = \"bot\"\nmodel = \"m\"\nmetadata = {\na = \"b\"\n}\nverified = true\n}\n  source = { listener = \"console\" }\n"},
	} {
		hide := func(s string) string { return strings.ReplaceAll(s, "secret", "hidden") }
		got := new(Recording).Block(RecordedCall{Name: "n", Tool: "t", Caller: row.caller, Hide: hide, Result: call.Result{Value: json.RawMessage("1")}})
		if diff := cmp.Diff("test \"n\" {\n  tool = \"t\"\n"+row.want+"\n  expect {\n    output = 1\n  }\n}\n", got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
