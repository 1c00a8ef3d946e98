package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

// printExplanation prints an explanation for people: a policy a paragraph, and at the end
// what comes of them.
func printExplanation(w io.Writer, x *pipeline.Explanation) error {
	var b strings.Builder
	if x.Found {
		fmt.Fprintf(&b, "%s %q, where default_decision is %q\n\n", x.Kind, x.Name, defaultDecision(x))
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
	_, err := io.WriteString(w, printable(b.String()))
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

// shownValue is what a condition says, in words; empty for one that was not asked.
func shownValue(v fmt.Stringer) string {
	return map[string]string{
		"true": "is true", "false": "is false", "open": "depends on what is not known", "failed": "cannot be evaluated",
	}[v.String()]
}

// traits says what is not usual about a policy.
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

// outcomes are what policies do, and what they would do that were not asked.
var outcomes = map[string][2]string{
	"allow":             {"allows", "would allow"},
	"deny":              {"denies", "would deny"},
	"not concerned":     {"does not concern the call", "would not concern the call"},
	"requires approval": {"asks the user to approve", "would ask the user to approve"},
	"unknown":           {"depends on what is not known", "would depend on what is not known"},
}

func saysIn(x *pipeline.Explanation, r pipeline.Ruling) string {
	outcome := outcomes[r.Decision.Outcome.String()]
	does := outcome[0]
	switch {
	case !r.Evaluated:
		does = fmt.Sprintf("not asked, as %s; %s", ended(x), outcome[1])
	case r.IsUnknown() && r.OnResult:
		does = "is asked when the call has returned"
	case r.BeforeArguments:
		does += ", before the arguments are looked at"
	}
	if r.Decision.Reason != "" {
		does += ": " + r.Decision.Reason
	}
	return does
}

// ended says why a call did not come to a policy.
func ended(x *pipeline.Explanation) string {
	switch {
	case x.DecidingRuling >= 0:
		return called(x.Rulings[x.DecidingRuling]) + " has denied the call"
	case x.DeniedByDefault:
		return "no policy allows the call"
	case x.Verdict == pipeline.VerdictRejected:
		return "the arguments are refused"
	default:
		return "the call has ended"
	}
}

func summaryOfExplanation(x *pipeline.Explanation) []string {
	lines := []string{verdictLine(x)}
	if x.ResultVerdict != "" && x.DecidingRuling < 0 {
		lines = append(lines, map[pipeline.Verdict]string{
			pipeline.VerdictAllowed: "what it returns may be seen", pipeline.VerdictDenied: "what it returns is denied", pipeline.VerdictRejected: "what it returns is refused",
			pipeline.VerdictUnknown: "what it returns is judged when it has returned; --result tries that",
		}[x.ResultVerdict])
	}
	if x.Error != nil {
		lines = append(lines, fmt.Sprintf("the caller is told %s: %s", x.Error.Code, x.Error.Message))
	}
	if len(x.Limits) > 0 && x.Verdict == pipeline.VerdictAllowed {
		lines = append(lines, fmt.Sprintf("not counted here: %s (%s)", count(len(x.Limits), "limit"), strings.Join(x.Limits, ", ")))
	}
	return lines
}

// verdictLine says whether the call may be made, and who decides it.
func verdictLine(x *pipeline.Explanation) string {
	switch {
	case x.DecidingRuling >= 0 && x.Rulings[x.DecidingRuling].OnResult:
		return fmt.Sprintf("allowed, and what it returns is denied by %s", nameOfPolicy(x.Rulings[x.DecidingRuling]))
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
		return "held until the user approves, for " + strings.Join(names, ", ")
	case x.Verdict == pipeline.VerdictUnknown:
		return "unknown"
	case x.Verdict == pipeline.VerdictAllowed && x.DenyByDefault:
		return "allowed"
	case x.Verdict == pipeline.VerdictAllowed:
		return "allowed: no policy denies it"
	}
	return string(x.Verdict)
}

// called names a policy, without its place.
func called(r pipeline.Ruling) string {
	if r.Policy.Compiled == nil {
		return "a policy in Go"
	}
	return strconv.Quote(r.Policy.Name)
}

// nameOfPolicy names a policy, with its place.
func nameOfPolicy(r pipeline.Ruling) string {
	if r.Policy.Compiled == nil {
		return called(r)
	}
	return fmt.Sprintf("policy %q (%s)", r.Policy.Name, r.Policy.Where)
}

// explanationRow is what policy explain says to machines.
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

// errorRow is what a caller is told.
type errorRow struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// rulingRow is what one policy says.
type rulingRow struct {
	Name     string        `json:"name"`
	Place    *placeRow     `json:"place"`
	Operator bool          `json:"operator"`
	On       string        `json:"on"`
	Disclose string        `json:"disclose"`
	When     *conditionRow `json:"when"`
	Decision *conditionRow `json:"decision"`
	Outcome  string        `json:"outcome"`
	Reason   string        `json:"reason"`
	Error    *string       `json:"error"`
	Asked    bool          `json:"asked"`
	Early    bool          `json:"before_arguments"`
	Decides  bool          `json:"decides"`
}

// conditionRow is a condition of a policy and what it says.
type conditionRow struct {
	Argument string   `json:"argument"`
	Place    placeRow `json:"place"`
	Value    string   `json:"value"`
}

// placeRow is a place in a file.
type placeRow struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func placeOf(r diag.Range) placeRow { return placeRow{r.File, r.Start.Line, r.Start.Column} }

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

// defaultDecision is what becomes of calls that no policy covers, in the words of the
// operator's file.
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

// value is what a condition says, for machines.
func value(v fmt.Stringer) string { return strings.ReplaceAll(v.String(), " ", "_") }
