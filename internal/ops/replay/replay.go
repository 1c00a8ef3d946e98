// Package replay judges calls that an audit log tells of by policies of today, and tells
// which of them would be decided otherwise.
//
// A [Replay] takes one [audit.Call] after the other. It makes a case of what the record
// holds, has it judged, and compares what policies say with what became of the call.
// What a record does not hold is never made up: where the decision depends on it, the
// call is counted as unknown, with the reason.
//
// It compares decisions, and not who made them. It counts no limits and runs no body, and
// of results, which no record holds, it knows what policies are sure of without them.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/policylang"
)

// maxNamed bounds the reasons and the names that are counted apart.
const maxNamed = 100

// Replay compares calls. It is for one goroutine.
type Replay struct {
	// Judge judges a call by the policies of today.
	Judge func(context.Context, pipeline.HypotheticalCall) (pipeline.Explanation, error)
	// Counts is what was found so far.
	Counts Counts
}

// Counts counts calls by what came of comparing them.
type Counts struct {
	// Calls are all; each of them is Different, Same, Unknown or Gone.
	Calls     int `json:"calls"`
	Different int `json:"different"`
	Same      int `json:"same"`
	// OtherPolicy counts those of Same that another policy denies.
	OtherPolicy int `json:"same_by_another_policy"`
	Unknown     int `json:"unknown"`
	Gone        int `json:"gone"`
	// Strange counts the lines of the log that are no records. The caller sets it.
	Strange int `json:"no_records"`
	// Reasons counts the unknown by why they are, and Names the gone by their names. What
	// is beyond a hundred is counted under "…".
	Reasons map[string]int `json:"unknown_reasons"`
	Names   map[string]int `json:"gone_names"`
}

// Change is a call that would be decided otherwise.
type Change struct {
	Call      *audit.Call
	Then, Now Decision
}

// Compare compares one call, and returns nil unless it would be decided otherwise. It
// gives a call the URI that was read where the record has that of a template and its values.
func (r *Replay) Compare(ctx context.Context, c *audit.Call) (*Change, error) {
	r.Counts.Calls++
	before, unknown := then(c)
	of, lacks := caseOf(c)
	if lacks != "" {
		return nil, r.unknown(lacks)
	}
	if c.Outcome == string(call.ToolNotFound) && before.Verdict == "" {
		return nil, r.unknown(unknown)
	}
	if of.Request.Kind == call.Resources {
		c.URI = of.Request.Name // with the values, where the record holds them
	}
	e, err := r.Judge(ctx, of)
	if err != nil {
		return nil, err
	}
	if !e.Found {
		r.Counts.Gone++
		count(&r.Counts.Names, c.Name)
		return nil, nil
	}
	now := decisionOf(&e, c, before)
	if unknown == "" || now.Verdict == pipeline.VerdictDenied && c.Outcome == audit.OutcomeInputRequired {
		unknown = doubt(c, before, now, &e)
	}
	switch {
	case unknown != "":
		return nil, r.unknown(unknown)
	case before.Verdict != now.Verdict && !unapproved(before, now, &e):
		r.Counts.Different++
		return &Change{c, before, now}, nil
	}
	if before.Verdict == pipeline.VerdictDenied && (before.By != now.By || before.ByDefault != now.ByDefault) {
		r.Counts.OtherPolicy++
	}
	r.Counts.Same++
	return nil, nil
}

// unknown counts a call that cannot be compared.
func (r *Replay) unknown(reason string) error {
	r.Counts.Unknown++
	count(&r.Counts.Reasons, reason)
	return nil
}

// count counts by a name, of which there may be any number.
func count(names *map[string]int, name string) {
	if *names == nil {
		*names = map[string]int{}
	}
	if _, known := (*names)[name]; !known && len(*names) >= maxNamed {
		name = "…"
	}
	(*names)[name]++
}

// decisionOf returns what policies say today. What a call returned was seen, or is asked
// for, only of one that succeeded, or that a policy over results may have denied.
func decisionOf(e *pipeline.Explanation, c *audit.Call, before Decision) Decision {
	d := Decision{Verdict: e.Verdict, ByDefault: e.DeniedByDefault}
	judged := c.Outcome == audit.OutcomeOK || before.Verdict == pipeline.VerdictDenied && !denies(e, before.By, false)
	approved := c.Approval != nil && c.Approval.State == audit.ApprovalGiven // as it would be today
	switch {
	case d.Verdict == pipeline.VerdictAllowed && judged && e.ResultVerdict != "",
		d.Verdict == pipeline.VerdictNeedsApproval && judged && approved && (e.ResultVerdict == pipeline.VerdictDenied || e.ResultVerdict == pipeline.VerdictUnknown):
		d.Verdict = e.ResultVerdict
	}
	if d.Verdict != pipeline.VerdictDenied && d.Verdict != pipeline.VerdictNeedsApproval {
		return d
	}
	for i := range e.Rulings {
		if e.Decides(i) && (d.Verdict == pipeline.VerdictNeedsApproval || i == e.DecidingRuling) {
			d.Ruling, d.By = &e.Rulings[i], e.Rulings[i].Policy.Name
			break
		}
	}
	return d
}

// denies reports whether there is a policy of a name over results, or over calls.
func denies(e *pipeline.Explanation, name string, onResult bool) bool {
	return slices.ContainsFunc(e.Rulings, func(r pipeline.Ruling) bool { return r.Policy.Name == name && r.OnResult == onResult })
}

// unapproved reports whether a call was denied for want of the approval that it needs today.
func unapproved(before, now Decision, e *pipeline.Explanation) bool {
	return before.Verdict == pipeline.VerdictDenied && now.Verdict == pipeline.VerdictNeedsApproval && slices.ContainsFunc(e.Rulings, func(r pipeline.Ruling) bool {
		return r.Policy.Name == before.By && r.Evaluated && r.Decision.Outcome == policylang.Consent
	})
}

// doubt returns why two decisions cannot be compared; "" when they can.
func doubt(c *audit.Call, before, now Decision, e *pipeline.Explanation) string {
	limit := before.By != "" && slices.Contains(e.Limits, before.By) && !denies(e, before.By, false) && !denies(e, before.By, true)
	switch {
	case now.Verdict == pipeline.VerdictUnknown:
		return lacking(e)
	case before.By == pipeline.DeniedByGo && !denies(e, pipeline.DeniedByGo, false):
		return "policies of the program that embedded the server denied it, and this one has none"
	case limit:
		return "a limit whose key could not be evaluated denied it"
	case before.Verdict == pipeline.VerdictRejected && now.Verdict != pipeline.VerdictRejected && (now.Ruling == nil || !now.Ruling.BeforeArguments):
		return "its arguments were refused, so that policies were not asked about them"
	case now.Verdict == pipeline.VerdictRejected && before.Verdict != pipeline.VerdictRejected:
		return "its arguments do not fit any more"
	case before.Verdict == pipeline.VerdictAllowed && now.Verdict == pipeline.VerdictNeedsApproval && c.Approval == nil && (c.Leg != 1 || c.Outcome != audit.OutcomeOK):
		return "whether its user was to approve it, or has, is not written down"
	}
	return ""
}

// lacking says what a decision depends on that the record does not hold.
func lacking(e *pipeline.Explanation) string {
	for _, r := range e.Rulings {
		if !r.Evaluated || !r.IsUnknown() {
			continue
		}
		if r.Policy.Compiled == nil {
			return "policies in Go read what the record does not hold"
		}
		parts := r.Policy.Compiled.Reads() & (e.Unknown | policylang.PartResult)
		return fmt.Sprintf("policy %q reads %s, of which the record does not hold all", r.Policy.Name, parts)
	}
	return "its policies read what the record does not hold"
}

// Decision is what became of a call as far as policies go.
type Decision struct {
	Verdict pipeline.Verdict
	// By names the policy that decided, where one did; ByDefault says that none allowed
	// the call and that calls are denied then.
	By        string
	ByDefault bool
	// Ruling is that of the policy, nil for what a record says.
	Ruling *pipeline.Ruling
}

// String returns the decision in words.
func (d Decision) String() string {
	switch {
	case d.ByDefault:
		return string(d.Verdict) + " by default"
	case d.By != "":
		return fmt.Sprintf("%s by %q", words[d.Verdict], d.By)
	}
	return cmp.Or(words[d.Verdict], string(d.Verdict))
}

// asked is the verdict of a call that has asked its user something.
const asked pipeline.Verdict = "asked"

// words are the verdicts as people read them.
var words = map[pipeline.Verdict]string{pipeline.VerdictDenied: "denied", pipeline.VerdictNeedsApproval: "held for approval", asked: "let ask its user"}

// then returns what the policies of the time decided, or why a record does not say.
func then(c *audit.Call) (d Decision, unknown string) {
	if d, told := held(c); told {
		return d, ""
	}
	switch {
	case c.Outcome == audit.OutcomeInputRequired:
		return Decision{Verdict: asked}, "whether it waited for an approval is not written down"
	case c.Declined:
		return d, "the server did not make it, and may not have asked its policies"
	case c.Outcome == audit.OutcomeOK, c.Limited, c.Outcome == string(call.Timeout):
		return Decision{Verdict: pipeline.VerdictAllowed}, ""
	case c.Outcome == string(call.ExecutionError):
		return Decision{Verdict: pipeline.VerdictAllowed}, ""
	case c.DeniedBy == pipeline.DeniedByDefault:
		return Decision{Verdict: pipeline.VerdictDenied, ByDefault: true}, ""
	case c.DeniedBy != "":
		return Decision{Verdict: pipeline.VerdictDenied, By: c.DeniedBy}, ""
	case c.Outcome == string(call.PolicyDenied) && c.Message == pipeline.NoAllowRule:
		return Decision{Verdict: pipeline.VerdictDenied, ByDefault: true}, ""
	case c.Outcome == string(call.InvalidInput):
		return Decision{Verdict: pipeline.VerdictRejected}, ""
	case c.Outcome == string(call.ToolNotFound):
		return d, "there was nothing of its name"
	}
	return d, "what denied it is not written down"
}

// held returns what policies decided of a call whose record says what became of its
// approval, unless another policy denied it afterwards. Whoever was to be asked, and
// whatever they said: the policies held the call, or did not want that any more.
func held(c *audit.Call) (d Decision, told bool) {
	a := c.Approval
	switch {
	case a == nil,
		a.State == audit.ApprovalNone && c.Outcome != audit.OutcomeInputRequired,
		a.State == audit.ApprovalGiven && (c.DeniedBy != "" || c.Outcome == string(call.PolicyDenied)):
		return d, false
	case len(a.Policies) == 0:
		return Decision{Verdict: pipeline.VerdictAllowed}, true
	}
	return Decision{Verdict: pipeline.VerdictNeedsApproval, By: a.Policies[0]}, true
}

// caseOf returns the case of a record, or why there is none.
func caseOf(c *audit.Call) (of pipeline.HypotheticalCall, unknown string) {
	of = pipeline.HypotheticalCall{
		Request: call.Request{Name: c.Name, Arguments: c.Values, Caller: c.Caller, Via: call.Via(c.Via)},
		Time:    c.Began, ID: c.Call, Depth: c.Depth,
	}
	switch c.Kind {
	case "tool":
	case "prompt":
		of.Request.Kind = call.Prompts
	case "resource":
		of.Request.Kind, of.Request.Name, of.Request.Arguments = call.Resources, uriOf(c), nil
		if !c.WholeURI || c.URI == "" {
			return of, "its URI is not written down whole"
		}
	default:
		return of, "what was to be completed is not written down"
	}
	if !c.WholeName {
		return of, "its name is not written down whole"
	}
	for part, lacks := range map[policylang.Parts]bool{
		policylang.PartArgs: !c.WholeArguments, policylang.PartPrincipal: !c.WholePrincipal,
		policylang.PartAgent: !c.WholeAgent, policylang.PartParent: c.Depth > 0,
	} {
		if lacks {
			of.Unknown |= part
		}
	}
	return of, ""
}

// uriOf returns the URI that was read. Of a template the record holds the address, and the
// values apart, if at all.
func uriOf(c *audit.Call) string {
	var values map[string]string
	if !c.WholeArguments || json.Unmarshal(c.Values, &values) != nil || len(values) == 0 {
		return c.URI
	}
	template, err := uritemplate.Parse(c.URI)
	if err != nil {
		return c.URI
	}
	uri, err := template.Expand(values)
	if err != nil {
		return c.URI
	}
	return uri
}
