package main

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

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
		Kind: x.Kind.String(), Name: x.Name, Found: x.Found, Verdict: string(x.Verdict), Result: orNull(string(x.Shown)),
		DefaultDecision: defaultDecision(x), ByDefault: x.ByDefault, Policies: []rulingRow{}, Limits: append([]string{}, x.Limits...),
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
		Outcome: strings.ReplaceAll(d.Outcome.String(), " ", "_"), Reason: d.Reason, Asked: r.Asked, Early: r.Early,
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
