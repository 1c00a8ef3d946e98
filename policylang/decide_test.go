package policylang

import (
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

func TestDecide_expressions(t *testing.T) {
	tests := map[string]Outcome{
		// Numbers
		"args.amount <= 5000":                          Allow,
		"args.amount * 100 == 5000":                    Allow,
		"100 * args.amount == 5000":                    Allow,
		"args.amount == 50":                            Allow,
		"args.amount != 50":                            Deny,
		"50 == args.amount":                            Allow,
		"args.amount in [1, 50]":                       Allow,
		"args.amount in [1, 2]":                        Deny,
		"args.amount in [1, 50.0]":                     Allow,
		"args.cents in [1.0, 700.0]":                   Allow,
		"args.amount / 3 > 16.6":                       Allow,
		"args.cents / 300 == 2":                        Allow,
		"args.cents % 300 == 100":                      Allow,
		"args.amount * args.count == 150":              Allow,
		"args.amount * args.count == 150.0":            Allow,
		"args.amount - 1 > args.cents / 70 + 1":        Allow,
		"((args.amount + 1) * 2 - 2) / 2 == 50":        Allow,
		"-args.amount == -50":                          Allow,
		"args.amounts.exists(a, a == 5)":               Allow,
		"args.amounts.all(a, a * 2 <= 10)":             Allow,
		"args.amounts == [1, 5]":                       Allow,
		"[args.amount] == [50]":                        Allow,
		"5 in args.amounts":                            Allow,
		"args.count in args.amounts":                   Deny,
		"(args.cents > 3 ? args.amount : 1) > 2":       Allow,
		"args.quota == 2 && args.quota + 1 == 3":       Allow,
		"args.any * 2 == 5":                            Allow,
		"1 + args.any == 3.5":                          Allow,
		"args.any + args.any == 5":                     Allow,
		"principal.claims.limit - 1 == 2":              Allow,
		"principal.claims.limit / 2 == 1.5":            Allow,
		"'a' + principal.claims.tenant == 'aacme'":     Allow,
		"principal.claims.tenant + 'a' == 'acmea'":     Allow,
		"args.amount <= vars.ceiling":                  Allow,
		"vars.ceiling == 5000 && vars.retries * 2 < 7": Allow,
		"vars.ceiling * vars.retries == 15000":         Allow,
		"math.greatest(args.amount, 5) == 50":          Allow,
		"{'a': args.amount} == {'a': 50}":              Allow,

		// Presence
		"has(args.note)":                                     Deny,
		"!has(args.note)":                                    Allow,
		"has(args.amount)":                                   Allow,
		"has(args.nope)":                                     Deny,
		"has(args.nope) && args.nope > 3":                    Deny,
		"args.nope > 3 && has(args.nope)":                    Deny,
		"!has(args.nope) || args.nope > 3":                   Allow,
		"has(args.nope) ? args.nope > 3 : args.cents > 3":    Allow,
		"!has(args.nope) ? args.cents > 3 : args.nope > 3":   Allow,
		"!(has(args.nope) && args.nope.deeper == 'x')":       Allow,
		"has(args.filters.nope) && args.filters.nope == 1":   Deny,
		"has(args.filters.deep) && args.filters.deep.x == 1": Deny,
		"has(args.nope) || args.cents > 3":                   Allow,
		"[1].exists(x, has(args.nope) && args.nope == x)":    Deny,
		"args.?note.orValue('none') == 'none'":               Allow,

		// Nulls
		"args.maybe == null":                        Allow,
		"args.maybe == 'x'":                         Deny,
		"agent.model == null && principal.id != ''": Allow,
		"agent.model == 'x' || principal.id == 'a'": Deny,
		"has(agent.model) || principal.id == 'a'":   Deny,

		// Variables
		"vars.stage == 'prod'":                                        Allow,
		"'b.example' in vars.hosts":                                   Allow,
		"principal.id == 'ada' && principal.kind == 'oauth'":          Allow,
		"principal.scopes.exists(s, s == 'admin')":                    Allow,
		"'admin' in principal.scopes":                                 Allow,
		"dyn(1) in principal.scopes":                                  Deny,
		"principal.groups == ['leads']":                               Allow,
		"principal.scopes[1] == 'admin'":                              Allow,
		"size(principal.scopes) == 2":                                 Allow,
		"(principal.scopes + ['x']).size() == 3":                      Allow,
		"principal.scopes.map(s, s.upperAscii())[1] == 'ADMIN'":       Allow,
		"principal.claims.roles.exists(r, r == 'lead')":               Allow,
		"'lead' in principal.claims.roles":                            Allow,
		"has(principal.claims.tenant) && !has(principal.claims.nope)": Allow,
		"principal.claims.nested.a == 2":                              Allow,
		"agent.metadata.team == 'crm' && principal.id != ''":          Allow,
		"agent.verified || principal.id == 'ada'":                     Allow,
		"tool.name == 'refund' && tool.labels.tier == 'gold'":         Allow,
		"tool.read_only || tool.open_world":                           Deny,
		"tool.idempotent && tool.destructive":                         Allow,
		"call.via == 'client' && call.depth == 0":                     Allow,
		"call.parent == ''":                                           Allow,
		"cidr('10.0.0.0/8').containsIP(source.ip)":                    Allow,
		"source.listener.endsWith(':8080')":                           Allow,
		"args.filters.status == 'open'":                               Allow,
		"args.labels.a == '1' && size(args.labels) == 2":              Allow,
		"args.labels['b'] == '2'":                                     Allow,
		"args.`content-type` == 'text'":                               Allow,
		"args.tags.map(t, t.size()) == [3, 3]":                        Allow,
		"args.status.matches('^act')":                                 Allow,
		"sets.contains(['new', 'vip', 'x'], args.tags)":               Allow,
		"cel.bind(t, args.tags, 'vip' in t)":                          Allow,
		"args.tags.join(',') == 'new,vip'":                            Allow,
		"principal == principal && principal != null":                 Allow,
		"type(args.cents) == int":                                     Allow,

		// Time
		"now == timestamp('2026-03-01T22:30:00Z')":                        Allow,
		"now.getHours() == 22 && now.getHours('Europe/Berlin') == 23":     Allow,
		"now.getDayOfWeek('+02:00') == 1":                                 Allow,
		"now.getDate('-23:00') == 28 && now.getMonth('-23:00') == 1":      Allow,
		"now - duration('1h') < now && now.getMinutes('Asia/Kolkata')==0": Allow,

		// Errors
		"principal.claims.nope == 'x'":          Deny,
		"!(principal.claims.nope == 'x')":       Deny,
		"principal.scopes[7] == 'x'":            Deny,
		"args.cents / (args.cents - 700) == 1":  Deny,
		"args.cents * 9223372036854775807 == 1": Deny,
		"principal.claims.tenant":               Deny,
		"principal.claims.tenant > 3":           Deny,
		"principal.claims.tenant.nope == 1":     Deny,
		"agent.model.startsWith('x') || false":  Deny,
	}
	e := newEnv(t)
	for expr, want := range tests {
		t.Run(expr, func(t *testing.T) {
			p := mustCompile(t, e, allowing(expr))
			got := p.Decide(t.Context(), refundInput())
			if got.Outcome != want {
				t.Errorf("allow: got %v (%v), want %v", got.Outcome, got.Err, want)
			}
			if got.Err != nil && got.Outcome != Deny {
				t.Errorf("an error did not deny: %v", got.Err)
			}
		})
	}
}

func TestDecide_errorDenies(t *testing.T) {
	e := newEnv(t)
	const broken = "principal.claims.nope == 'x'"
	whenBroken := denying("false")
	whenBroken.When = inFile(broken)
	notBool := denying("principal.claims.tenant")
	for name, src := range map[string]Source{
		"allow": allowing(broken), "deny": denying(broken), "when": whenBroken, "not a bool": notBool,
	} {
		t.Run(name, func(t *testing.T) {
			d := mustCompile(t, e, src).Decide(t.Context(), refundInput())
			if d.Outcome != Deny || d.Reason != GenericReason || d.Err == nil {
				t.Errorf("got %+v, want a denial with the generic reason and an error for the operator", d)
			}
		})
	}
}

func TestDecide_errorHasRangeAndNoValues(t *testing.T) {
	tests := map[string]string{
		"principal.claims.nope == 'x'":           `policy "p": policies.hcl:3:29: "nope" is absent`,
		"principal.claims[args.filters.status]":  `policy "p": policies.hcl:3:28: a key is absent`,
		"principal.scopes[7] == 'x'":             `policy "p": policies.hcl:3:28: a list index is out of range`,
		"args.cents / (args.cents - 700) == 1":   `policy "p": policies.hcl:3:23: division by zero`,
		"args.cents * 9223372036854775807 == 1":  `policy "p": policies.hcl:3:23: a number is out of range`,
		"principal.claims.tenant":                `policy "p": policies.hcl:3:12: allow is not true or false but a string`,
		"principal.claims.nested":                `policy "p": policies.hcl:3:12: allow is not true or false but a map`,
		"principal.claims.roles":                 `policy "p": policies.hcl:3:12: allow is not true or false but a list`,
		"principal.claims.missing":               `policy "p": policies.hcl:3:29: "missing" is absent`,
		"principal.claims.limit":                 `policy "p": policies.hcl:3:12: allow is not true or false but a number`,
		"principal.claims.tenant > 3":            `policy "p": policies.hcl:3:36: a value has the wrong type`,
		"int(principal.claims.tenant) == 1":      `policy "p": policies.hcl:3:12: it cannot be evaluated`,
		"timestamp(principal.claims.tenant)<now": `policy "p": policies.hcl:3:12: it cannot be evaluated`,
	}
	e := newEnv(t)
	for expr, want := range tests {
		t.Run(expr, func(t *testing.T) {
			d := mustCompile(t, e, allowing(expr)).Decide(t.Context(), refundInput())
			if d.Err == nil {
				t.Fatalf("got %v without an error", d.Outcome)
			}
			if diff := cmp.Diff(want, d.Err.Error()); diff != "" {
				t.Error(diff)
			}
			if d.Range.File != "policies.hcl" || d.Range.Start.Line != 3 {
				t.Errorf("the range of the decision is %v", d.Range)
			}
		})
	}
}

func TestDecide_namesIntegerBeyondInt64(t *testing.T) {
	e := newEnv(t)
	in := refundInput()
	far, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	in.Args = maps.Clone(in.Args)
	in.Args["count"], in.Args["filters"] = far, map[string]any{"status": far}
	for expr, want := range map[string]string{
		"args.count == 3":                   `policy "p": policies.hcl:3:12: "count" holds an integer beyond 64 bits`,
		"args.cents > 1 && args.count == 3": `policy "p": policies.hcl:3:12: "count" holds an integer beyond 64 bits`,
		"string(args.count) == '3'":         `policy "p": policies.hcl:3:12: "count" holds an integer beyond 64 bits`,
		"args.filters.status == '3'":        `policy "p": policies.hcl:3:12: "filters" holds an integer beyond 64 bits`,
	} {
		d := mustCompile(t, e, allowing(expr)).Decide(t.Context(), in)
		if d.Err == nil || d.Err.Error() != want {
			t.Errorf("%s: got %v, want %s", expr, d.Err, want)
		}
	}
}

func TestDecide_when(t *testing.T) {
	e := newEnv(t)
	src := denying("true")
	src.When = inFile("!tool.read_only")
	p := mustCompile(t, e, src)
	in := refundInput()
	if d := p.Decide(t.Context(), in); d.Outcome != Deny || d.Reason != "no" {
		t.Errorf("writing tool: %+v", d)
	}
	in.Tool.ReadOnly = true
	if d := p.Decide(t.Context(), in); d.Outcome != NotApplicable || d.Reason != "" {
		t.Errorf("reading tool: %+v", d)
	}
}

func TestDecide_reason(t *testing.T) {
	tests := []struct {
		name, expr, want string
		failed           bool
	}{
		{"are computed from anything", "'limit is ' + string(vars.retries) + ' for ' + tool.name", "limit is 3 for refund", false},
		{"read arguments", "'not ' + args.status", "not active", false},
		{"fall back when they cannot be evaluated", "'for ' + principal.claims.nope", GenericReason, true},
		{"fall back when they are no strings", "principal.claims.limit", GenericReason, true},
		{"fall back when they are empty", "''", GenericReason, false},
		{"are cut when they are long", "args.note", strings.Repeat("é", maxReason/2), false},
	}
	e := newEnv(t)
	in := refundInput()
	in.Args["note"] = strings.Repeat("é", maxReason)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := allowing("args.amount > 5000")
			src.Reason, src.ReasonExpr = "", inFile(tt.expr)
			d := mustCompile(t, e, src).Decide(t.Context(), in)
			if diff := cmp.Diff(tt.want, d.Reason); diff != "" {
				t.Error(diff)
			}
			if d.Outcome != Deny || (d.Err != nil) != tt.failed {
				t.Errorf("got %v and %v", d.Outcome, d.Err)
			}
		})
	}
}

func TestDecide_noReasonIfAllowed(t *testing.T) {
	src := allowing("args.amount < 5000")
	src.ReasonExpr = inFile("principal.claims.nope")
	if d := mustCompile(t, newEnv(t), src).Decide(t.Context(), refundInput()); d.Outcome != Allow || d.Err != nil {
		t.Errorf("got %+v", d)
	}
}

func TestDecide_canceledContext(t *testing.T) {
	p := mustCompile(t, newEnv(t), allowing("args.tags.all(t, t != 'x')"))
	in := refundInput()
	tags := make([]any, 1000)
	for i := range tags {
		tags[i] = "a"
	}
	in.Args["tags"] = tags
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := p.Decide(ctx, in)
	if d.Outcome != Deny || d.Err == nil || !strings.Contains(d.Err.Error(), "longer than") {
		t.Errorf("got %+v", d)
	}
	if d := p.Decide(t.Context(), in); d.Outcome != Allow {
		t.Errorf("uninterrupted: %+v", d)
	}
}

func TestDecide_deterministic(t *testing.T) {
	e := newEnv(t)
	in := refundInput()
	labels := map[string]any{}
	for _, c := range "qwertzuiopasdfghjklyxcvbnm" {
		labels[string(c)] = string(c)
	}
	in.Args["labels"] = labels
	in.Caller.Principal.Claims["labels"] = labels
	for _, expr := range []string{
		"args.labels.map(k, k)[0] == 'a'",
		"principal.claims.labels.map(k, k).join('') == 'abcdefghijklmnopqrstuvwxyz'",
		"{'b': 1, 'a': 2, 'c': 3}.map(k, k) == ['a', 'b', 'c']",
		"{3: 1, 1: 2, 2: 3}.map(k, k) == [1, 2, 3]",
		"now == timestamp('2026-03-01T22:30:00Z')",
	} {
		p := mustCompile(t, e, allowing(expr))
		for range 20 {
			if d := p.Decide(t.Context(), in); d.Outcome != Allow {
				t.Fatalf("%s: %+v", expr, d)
			}
		}
	}
	p := mustCompile(t, e, allowing("now.getFullYear() == 1999"))
	in.Now = time.Date(1999, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)).Add(time.Hour)
	if d := p.Decide(t.Context(), in); d.Outcome != Allow {
		t.Errorf("with another clock: %+v", d)
	}
}

// A missing approval denies. Before the arguments are known, Partial returns only certain
// results.
func TestDecide_approval(t *testing.T) {
	for _, test := range []struct {
		when, approval   string
		decided, partial Outcome
	}{
		{"", "args.amount > 10", NeedsApproval, Unknown},
		{"", "args.amount > 100", Allow, Unknown},
		{"", "tool.destructive || principal.id == 'ada'", NeedsApproval, NeedsApproval},
		{"", "principal.id == 'eve'", Allow, Allow},
		{"principal.id == 'eve'", "args.amount > 10", NotApplicable, NotApplicable},
		{"", "principal.claims.level == 3", Deny, Deny},
		{"principal.claims.level == 3", "args.amount > 10", Deny, Deny},
	} {
		src := Source{Name: "p", Approval: inFile(test.approval), Reason: "It costs"}
		if test.when != "" {
			src.When = inFile(test.when)
		}
		p, problems := newEnv(t).Compile(src, refund())
		if p == nil {
			t.Fatalf("%s: %v", test.approval, problems)
		}
		got := p.Decide(t.Context(), refundInput())
		if partial := p.Partial(t.Context(), refundInput()).Outcome; got.Outcome != test.decided || partial != test.partial {
			t.Errorf("%s: got %v, partial %v", test.approval, got.Outcome, partial)
		}
		if got.Outcome == NeedsApproval && got.Reason != "It costs" {
			t.Errorf("%s: got reason %q", test.approval, got.Reason)
		}
	}
}

// An approval that is never required is a warning; one that always is, is not.
func TestLint_approvalNeverRequired(t *testing.T) {
	for approval, want := range map[string]int{"true": 0, "false": 1} {
		if _, problems := newEnv(t).Compile(Source{Name: "p", Approval: inFile(approval), Reason: "It costs"}, refund()); len(problems) != want {
			t.Errorf("%s: %v", approval, problems)
		}
	}
}

func judging(expr string) Source {
	src := denying(expr)
	src.OnResult = true
	return src
}

func TestLint_outputWithDefault(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"tier":{"type":"string","default":"gold"}}}`)
	tool := Tool{Name: "x", Schema: schema, Result: schema}
	if _, diags := newEnv(t).Compile(denying("args.tier == 'internal'"), tool); len(diags) > 0 {
		t.Errorf("an argument with a default: %v", diags)
	}
	_, diags := newEnv(t).Compile(judging("result.tier == 'internal'"), tool)
	if diff := cmp.Diff([]string{"result.tier is optional, and without it this denies the call"}, summaries(diags)); diff != "" {
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

func TestCompile_resultInCallPolicy(t *testing.T) {
	for _, root := range []string{"result", "content"} {
		_, diags := newEnv(t).Compile(denying(root+" == 'x'"), refund())
		if want := `a policy with on = "result" judges what a call returns`; len(diags) != 1 || diags[0].Detail != want {
			t.Errorf("%s: %v", root, diags)
		}
	}
}

func TestCompile_contentErrorNamesTool(t *testing.T) {
	_, diags := newEnv(t).Compile(judging("content.nope == 1"), refund())
	if len(diags) != 1 || len(diags[0].Notes) != 2 || !strings.Contains(diags[0].Notes[1].Message, `tool "refund"`) {
		t.Errorf("got %+v", diags)
	}
}

func TestResult_limits(t *testing.T) {
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

// Policies see the same digits as the client.
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
		// Numbers that CEL cannot hold deny.
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
