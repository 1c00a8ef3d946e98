package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// printExplanation prints an explanation for people: one paragraph for each policy,
// then the verdict.
func printExplanation(w io.Writer, x *pipeline.Explanation) error {
	var b strings.Builder
	if x.Found {
		fmt.Fprintf(&b, "%s %q, default_decision is %q\n\n", x.Kind, x.Name, defaultDecision(x))
	}
	for i, r := range x.Rulings {
		mark := " "
		if x.Decides(i) {
			mark = ">"
		}
		writeRuling(&b, mark, x, r)
	}
	if x.Found && len(x.Rulings) == 0 {
		b.WriteString("no policy covers it\n\n")
	}
	for _, line := range summaryOfExplanation(x) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, sanitize(b.String()))
	return err
}

func writeRuling(b *strings.Builder, mark string, x *pipeline.Explanation, r pipeline.Ruling) {
	p := r.Policy
	if p.Compiled == nil {
		fmt.Fprintf(b, "%s policies of the program, in Go\n    %s\n\n", mark, saysIn(x, r))
		return
	}
	fmt.Fprintf(b, "%s %s: policy %q%s\n", mark, p.Where, p.Name, traits(r))
	called, verdict, when := p.Compiled.Where()
	if when.File != "" {
		fmt.Fprintf(b, "    %s: when %s\n", when, shownValue(r.Decision.When))
	}
	if v := shownValue(r.Decision.Verdict); v != "" {
		fmt.Fprintf(b, "    %s: %s %s\n", verdict, called, v)
	}
	if err := r.Decision.Err; err != nil {
		fmt.Fprintf(b, "    %s\n", err)
	}
	fmt.Fprintf(b, "    %s\n\n", saysIn(x, r))
}

// shownValue describes the value of a condition; it is empty for one not evaluated.
func shownValue(v fmt.Stringer) string {
	return map[string]string{
		"true": "is true", "false": "is false", "open": "depends on unknown facts", "failed": "failed to evaluate",
	}[v.String()]
}

// traits lists the settings of a policy that are not the default.
func traits(r pipeline.Ruling) string {
	var traits []string
	if r.Policy.Operator {
		traits = append(traits, "of the operator")
	}
	if r.OnResult {
		traits = append(traits, "over the result")
	}
	if r.Policy.Disclose != "reason" {
		traits = append(traits, fmt.Sprintf("disclose = %q", r.Policy.Disclose))
	}
	if len(traits) == 0 {
		return ""
	}
	return ", " + strings.Join(traits, ", ")
}

// outcomes maps an outcome to its description for a policy that was evaluated and for
// one that was not reached.
var outcomes = map[string][2]string{
	"allow":             {"allows", "would allow"},
	"deny":              {"denies", "would deny"},
	"not concerned":     {"does not apply", "would not apply"},
	"requires approval": {"requires approval", "would require approval"},
	"unknown":           {"depends on unknown facts", "would depend on unknown facts"},
}

func saysIn(x *pipeline.Explanation, r pipeline.Ruling) string {
	outcome := outcomes[r.Decision.Outcome.String()]
	does := outcome[0]
	switch {
	case !r.Evaluated:
		does = fmt.Sprintf("not reached, because %s; %s", ended(x), outcome[1])
	case r.IsUnknown() && r.OnResult:
		does = "is evaluated when the call has returned"
	case r.BeforeArguments:
		does += ", before the arguments are checked"
	}
	if r.Decision.Reason != "" {
		does += ": " + r.Decision.Reason
	}
	return does
}

// ended returns the reason why a policy was not reached.
func ended(x *pipeline.Explanation) string {
	switch {
	case x.DecidingRuling >= 0:
		return called(x.Rulings[x.DecidingRuling]) + " denied the call"
	case x.DeniedByDefault:
		return "no policy allows the call"
	case x.Verdict == pipeline.VerdictRejected:
		return "the arguments are invalid"
	default:
		return "the call has ended"
	}
}

// resultAdvice follows the verdict about an unknown result on the command line.
const resultAdvice = "; try one with --result"

func summaryOfExplanation(x *pipeline.Explanation) []string {
	lines := []string{verdictLine(x)}
	if x.ResultVerdict != "" && x.DecidingRuling < 0 {
		lines = append(lines, map[pipeline.Verdict]string{
			pipeline.VerdictAllowed: "the result is allowed", pipeline.VerdictDenied: "the result is denied", pipeline.VerdictRejected: "the result is rejected",
			pipeline.VerdictUnknown: "the result is evaluated when the call has returned" + resultAdvice,
		}[x.ResultVerdict])
	}
	if x.Error != nil {
		lines = append(lines, fmt.Sprintf("the caller gets %s: %s", x.Error.Code, x.Error.Message))
	}
	if len(x.Limits) > 0 && x.Verdict == pipeline.VerdictAllowed {
		lines = append(lines, fmt.Sprintf("rate limits not counted: %s (%s)", count(len(x.Limits), "limit"), strings.Join(x.Limits, ", ")))
	}
	return lines
}

// verdictLine returns the verdict and the policy that decides it.
func verdictLine(x *pipeline.Explanation) string {
	switch {
	case x.DecidingRuling >= 0 && x.Rulings[x.DecidingRuling].OnResult:
		return fmt.Sprintf("allowed, but the result is denied by %s", nameOfPolicy(x.Rulings[x.DecidingRuling]))
	case x.DecidingRuling >= 0:
		return fmt.Sprintf("denied by %s", nameOfPolicy(x.Rulings[x.DecidingRuling]))
	case x.DeniedByDefault:
		return "denied: no policy allows it, and default_decision is \"deny\""
	case x.Verdict == pipeline.VerdictNeedsApproval:
		var names []string
		for i, r := range x.Rulings {
			if x.Decides(i) {
				names = append(names, nameOfPolicy(r))
			}
		}
		return "held for approval by " + strings.Join(names, ", ")
	case x.Verdict == pipeline.VerdictUnknown:
		return "unknown"
	case x.Verdict == pipeline.VerdictAllowed && x.DenyByDefault:
		return "allowed"
	case x.Verdict == pipeline.VerdictAllowed:
		return "allowed: no policy denies it"
	}
	return string(x.Verdict)
}

// called returns the name of a policy.
func called(r pipeline.Ruling) string {
	if r.Policy.Compiled == nil {
		return "a policy in Go"
	}
	return strconv.Quote(r.Policy.Name)
}

// nameOfPolicy returns the name and the position of a policy.
func nameOfPolicy(r pipeline.Ruling) string {
	if r.Policy.Compiled == nil {
		return called(r)
	}
	return fmt.Sprintf("policy %q (%s)", r.Policy.Name, r.Policy.Where)
}

// explanationRow is the JSON output of policy explain.
type explanationRow struct {
	Kind            string      `json:"kind"`
	Name            string      `json:"name"`
	Found           bool        `json:"found"`
	Verdict         string      `json:"verdict"`
	Result          *string     `json:"result"`
	DecidedBy       *string     `json:"decided_by"`
	DefaultDecision string      `json:"default_decision"`
	ByDefault       bool        `json:"by_default"`
	Error           *errorRow   `json:"error"`
	Policies        []rulingRow `json:"policies"`
	Limits          []string    `json:"limits"`
}

// errorRow is the error that the caller gets.
type errorRow struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// rulingRow is the decision of one policy.
type rulingRow struct {
	Name     string         `json:"name"`
	Place    *control.Place `json:"place"`
	Operator bool           `json:"operator"`
	On       string         `json:"on"`
	Disclose string         `json:"disclose"`
	When     *conditionRow  `json:"when"`
	Decision *conditionRow  `json:"decision"`
	Outcome  string         `json:"outcome"`
	Reason   string         `json:"reason"`
	Error    *string        `json:"error"`
	Asked    bool           `json:"asked"`
	Early    bool           `json:"before_arguments"`
	Decides  bool           `json:"decides"`
}

// conditionRow is a condition of a policy and its value.
type conditionRow struct {
	Argument string        `json:"argument"`
	Place    control.Place `json:"place"`
	Value    string        `json:"value"`
}

// placeOf returns the start of a range.
func placeOf(r diag.Range) control.Place {
	return control.Place{File: r.File, Line: r.Start.Line, Column: r.Start.Column}
}

func explanationRowOf(x *pipeline.Explanation) explanationRow {
	row := explanationRow{
		Kind: x.Kind.String(), Name: x.Name, Found: x.Found, Verdict: string(x.Verdict), Result: orNull(string(x.ResultVerdict)),
		DefaultDecision: defaultDecision(x), ByDefault: x.DeniedByDefault, Policies: []rulingRow{}, Limits: append([]string{}, x.Limits...),
	}
	if x.Error != nil {
		row.Error = &errorRow{string(x.Error.Code), x.Error.Message}
	}
	for i, r := range x.Rulings {
		row.Policies = append(row.Policies, rulingRowOf(r))
		if row.Policies[i].Decides = x.Decides(i); row.Policies[i].Decides && row.DecidedBy == nil {
			row.DecidedBy = &r.Policy.Name
		}
	}
	return row
}

// defaultDecision returns the value of default_decision: what happens to calls without
// a policy.
func defaultDecision(x *pipeline.Explanation) string {
	if x.DenyByDefault {
		return "deny"
	}
	return "allow"
}

func rulingRowOf(r pipeline.Ruling) rulingRow {
	d, p := r.Decision, r.Policy
	row := rulingRow{
		Name: p.Name, Operator: p.Operator, On: "call", Disclose: p.Disclose,
		Outcome: strings.ReplaceAll(d.Outcome.String(), " ", "_"), Reason: d.Reason, Asked: r.Evaluated, Early: r.BeforeArguments,
	}
	if r.OnResult {
		row.On = "result"
	}
	if d.Err != nil {
		row.Error = orNull(d.Err.Error())
	}
	if p.Compiled == nil {
		return row
	}
	place := placeOf(p.Where)
	called, verdict, when := p.Compiled.Where()
	row.Place, row.Decision = &place, &conditionRow{called, placeOf(verdict), value(d.Verdict)}
	if when.File != "" {
		row.When = &conditionRow{"when", placeOf(when), value(d.When)}
	}
	return row
}

// value returns the value of a condition for machines.
func value(v fmt.Stringer) string { return strings.ReplaceAll(v.String(), " ", "_") }
