// Package replay evaluates recorded calls with current policies and finds the calls
// that these would decide differently.
//
// A [Replay] compares one [audit.Call] after the other. It builds a hypothetical call
// from the record, evaluates it, and compares the decision with the recorded outcome.
// It does not guess facts that the record lacks: if the decision depends on one, the
// call counts as unknown, with the reason. A [Trial] does so for the policies of a bundle. A
// [Comparison] ignores the recorded outcomes and compares two sets of policies.
//
// Replay compares decisions, not the policies that made them. It counts no rate limits
// and runs no scripts. Records hold no results, so policies over results are evaluated
// without one.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/policylang"
)

// maxNamed is the maximum number of separately counted reasons and names.
const maxNamed = 100

// Evaluate evaluates a call with a set of policies.
type Evaluate func(context.Context, pipeline.HypotheticalCall) (pipeline.Explanation, error)

// Replay compares recorded decisions with the decisions of the current policies. It is not safe for concurrent
// use.
type Replay struct {
	// Evaluate evaluates a call with the current policies.
	Evaluate Evaluate
	// Counts is the result so far.
	Counts Counts
}

// Counts counts the compared calls.
type Counts struct {
	// Calls is the total; each call is Different, Same, Unknown or Gone.
	Calls     int `json:"calls"`
	Different int `json:"different"`
	Same      int `json:"same"`
	// DifferentPolicy counts the Same calls that another policy denies.
	DifferentPolicy int `json:"same_by_another_policy"`
	Unknown         int `json:"unknown"`
	Gone            int `json:"gone"`
	// NoRecords counts the lines of the log that are not records. The caller sets it.
	NoRecords int `json:"no_records"`
	// Reasons counts the unknown calls by reason, and Names the Gone calls by name.
	// After a hundred distinct ones, the rest counts under "…".
	Reasons map[string]int `json:"unknown_reasons"`
	Names   map[string]int `json:"gone_names"`
}

// DecisionChange is a call that would be decided differently.
type DecisionChange struct {
	Call              *audit.Call
	Recorded, Current PolicyOutcome
}

// Compare compares one call, and returns nil unless the decision differs. If the record
// has a template URI and its values, Compare sets c.URI to the expanded URI.
func (r *Replay) Compare(ctx context.Context, c *audit.Call) (*DecisionChange, error) {
	j, err := r.Evaluate.judge(ctx, c)
	if err != nil || !r.Counts.add(c, j) {
		return nil, err
	}
	if j.differs {
		r.Counts.Different++
		return &DecisionChange{c, j.recorded, j.current}, nil
	}
	r.Counts.same(j.recorded, j.current)
	return nil, nil
}

// judgment compares the recorded decision about a call with the decision of a set of policies.
type judgment struct {
	recorded, current PolicyOutcome
	// unknown says why the decisions cannot be compared; "" if they can.
	unknown string
	// gone means that the item does not exist any more.
	gone    bool
	differs bool
}

// judge evaluates one call.
func (evaluate Evaluate) judge(ctx context.Context, c *audit.Call) (j judgment, err error) {
	j.recorded, j.unknown = recordedDecision(c)
	of, lacks := hypotheticalFrom(c)
	if lacks != "" {
		j.unknown = lacks
		return j, nil
	}
	if c.Outcome == string(call.ToolNotFound) && j.recorded.Verdict == "" {
		return j, nil
	}
	if of.Request.Kind == call.Resources {
		c.URI = of.Request.Name // expanded, if the record has the values
	}
	e, err := evaluate(ctx, of)
	if err == nil && c.Kind == completion {
		e, lacks, err = evaluate.orTemplate(ctx, of, e)
	}
	if err != nil || lacks != "" {
		j.unknown = lacks
		return j, err
	}
	if !e.Found {
		j.gone, j.unknown = true, ""
		return j, nil
	}
	j.current = decisionOf(&e, c, j.recorded)
	if j.unknown == "" || j.current.Verdict == pipeline.VerdictDenied && c.Outcome == audit.OutcomeInputRequired {
		j.unknown = incomparableReason(c, j.recorded, j.current, &e)
	}
	j.differs = j.recorded.Verdict != j.current.Verdict && !unapproved(j.recorded, j.current, &e)
	return j, nil
}

// orTemplate returns the explanation of a prompt, or of a template with its name: the record of a
// completion does not say which of them has the argument.
func (evaluate Evaluate) orTemplate(ctx context.Context, of pipeline.HypotheticalCall, prompt pipeline.Explanation) (e pipeline.Explanation, unknown string, err error) {
	of.Request.Kind = call.Templates
	template, err := evaluate(ctx, of)
	switch {
	case err != nil || !template.Found:
		return prompt, "", err
	case prompt.Found:
		return prompt, "a prompt and a template have its name", nil
	}
	return template, "", nil
}

// add counts a call, and reports whether its decisions can be compared.
func (n *Counts) add(c *audit.Call, j judgment) bool {
	n.Calls++
	switch {
	case j.gone:
		n.Gone++
		count(&n.Names, c.Name)
	case j.unknown != "":
		n.Unknown++
		count(&n.Reasons, j.unknown)
	default:
		return true
	}
	return false
}

// same counts a call with equal decisions.
func (n *Counts) same(before, now PolicyOutcome) {
	if before.Verdict == pipeline.VerdictDenied && (before.By != now.By || before.ByDefault != now.ByDefault) {
		n.DifferentPolicy++
	}
	n.Same++
}

// count increments a counter of a bounded set of names.
func count(names *map[string]int, name string) {
	if *names == nil {
		*names = map[string]int{}
	}
	if _, known := (*names)[name]; !known && len(*names) >= maxNamed {
		name = "…"
	}
	(*names)[name]++
}

// decisionOf returns the current decision. The result of a call matters only if the
// call succeeded, or was possibly denied by a policy over results.
func decisionOf(e *pipeline.Explanation, c *audit.Call, before PolicyOutcome) PolicyOutcome {
	d := PolicyOutcome{Verdict: e.Verdict, ByDefault: e.DeniedByDefault}
	judged := c.Outcome == audit.OutcomeOK || before.Verdict == pipeline.VerdictDenied && !denies(e, before.By, false)
	approved := c.Approval != nil && c.Approval.State == audit.ApprovalGranted // assume the same answer today
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

// denies reports whether a policy with this name over results, or over calls, denies.
func denies(e *pipeline.Explanation, name string, onResult bool) bool {
	return slices.ContainsFunc(e.Rulings, func(r pipeline.Ruling) bool { return r.Policy.Name == name && r.OnResult == onResult })
}

// unapproved reports whether a call was denied because it lacked the approval that it
// needs now.
func unapproved(before, now PolicyOutcome, e *pipeline.Explanation) bool {
	return before.Verdict == pipeline.VerdictDenied && now.Verdict == pipeline.VerdictNeedsApproval && slices.ContainsFunc(e.Rulings, func(r pipeline.Ruling) bool {
		return r.Policy.Name == before.By && r.Evaluated && r.Decision.Outcome == policylang.NeedsApproval
	})
}

// incomparableReason returns the reason why two decisions cannot be compared, or "".
func incomparableReason(c *audit.Call, before, now PolicyOutcome, e *pipeline.Explanation) string {
	limit := before.By != "" && slices.Contains(e.Limits, before.By) && !denies(e, before.By, false) && !denies(e, before.By, true)
	switch {
	case now.Verdict == pipeline.VerdictUnknown:
		return missingFacts(e)
	case before.By == pipeline.DeniedByGo && !denies(e, pipeline.DeniedByGo, false):
		return "it was denied by Go policies of a program, and mcpd has none"
	case limit:
		return "it was denied by a limit with a key that failed to evaluate"
	case before.Verdict == pipeline.VerdictRejected && now.Verdict != pipeline.VerdictRejected && (now.Ruling == nil || !now.Ruling.BeforeArguments):
		return "its arguments were invalid, so policies were not evaluated"
	case now.Verdict == pipeline.VerdictRejected && before.Verdict != pipeline.VerdictRejected:
		return "its arguments no longer match the schema"
	case before.Verdict == pipeline.VerdictAllowed && now.Verdict == pipeline.VerdictNeedsApproval && c.Approval == nil && (c.Leg != 1 || c.Outcome != audit.OutcomeOK):
		return "the record has no approval"
	}
	return ""
}

// missingFacts names the facts that a decision needs and the record lacks.
func missingFacts(e *pipeline.Explanation) string {
	for _, r := range e.Rulings {
		if !r.Evaluated || !r.IsUnknown() {
			continue
		}
		if r.Policy.Compiled == nil {
			return "Go policies read facts that the record lacks"
		}
		parts := r.Policy.Compiled.Reads() & (e.Unknown | policylang.PartResult)
		return fmt.Sprintf("policy %q reads %s, which the record lacks or holds in part", r.Policy.Name, parts)
	}
	return "its policies read facts that the record lacks"
}

// PolicyOutcome is the outcome of a call as far as policies matter.
type PolicyOutcome struct {
	Verdict pipeline.Verdict
	// By is the name of the deciding policy, if any. ByDefault means that no policy
	// allowed the call and the default is to deny.
	By        string
	ByDefault bool
	// Ruling is the decision of the policy, nil for a recorded decision.
	Ruling *pipeline.Ruling
}

// String returns the decision in words.
func (o PolicyOutcome) String() string {
	switch {
	case o.ByDefault:
		return string(o.Verdict) + " by default"
	case o.By != "":
		return fmt.Sprintf("%s by %q", verdictNames[o.Verdict], o.By)
	}
	return cmp.Or(verdictNames[o.Verdict], string(o.Verdict))
}

// verdictAsked is the verdict of a call that asked its user for input.
const verdictAsked pipeline.Verdict = "asked"

// verdictNames describes the verdicts.
var verdictNames = map[pipeline.Verdict]string{pipeline.VerdictDenied: "denied", pipeline.VerdictNeedsApproval: "held for approval", verdictAsked: "allowed to ask its user"}

// recordedDecision returns the recorded decision, or the reason why the record lacks it.
func recordedDecision(c *audit.Call) (d PolicyOutcome, unknown string) {
	if d, ok := decisionFromApproval(c); ok {
		return d, ""
	}
	switch {
	case c.Outcome == audit.OutcomeInputRequired:
		return PolicyOutcome{Verdict: verdictAsked}, "the record does not say if it waited for an approval"
	case c.Declined:
		return d, "the server declined it, possibly before all policies were evaluated"
	case c.Outcome == audit.OutcomeOK, c.Limited, c.Outcome == string(call.Timeout):
		return PolicyOutcome{Verdict: pipeline.VerdictAllowed}, ""
	case c.Outcome == string(call.ExecutionError):
		return PolicyOutcome{Verdict: pipeline.VerdictAllowed}, ""
	case c.DeniedBy == pipeline.DeniedByDefault:
		return PolicyOutcome{Verdict: pipeline.VerdictDenied, ByDefault: true}, ""
	case c.DeniedBy != "":
		return PolicyOutcome{Verdict: pipeline.VerdictDenied, By: c.DeniedBy}, ""
	case c.Outcome == string(call.PolicyDenied) && c.Message == pipeline.NoAllowRule:
		return PolicyOutcome{Verdict: pipeline.VerdictDenied, ByDefault: true}, ""
	case c.Outcome == string(call.InvalidInput):
		return PolicyOutcome{Verdict: pipeline.VerdictRejected}, ""
	case c.Outcome == string(call.ToolNotFound):
		return d, "its name was unknown"
	}
	return d, "the record does not say what denied it"
}

// decisionFromApproval returns the recorded decision of a call with an approval record, unless a policy
// denied it afterwards. Whatever the answer was, policies either held the call or no
// longer required approval.
func decisionFromApproval(c *audit.Call) (d PolicyOutcome, ok bool) {
	a := c.Approval
	switch {
	case a == nil,
		a.State == audit.ApprovalNone && c.Outcome != audit.OutcomeInputRequired,
		a.State == audit.ApprovalGranted && (c.DeniedBy != "" || c.Outcome == string(call.PolicyDenied)):
		return d, false
	case len(a.Policies) == 0:
		return PolicyOutcome{Verdict: pipeline.VerdictAllowed}, true
	}
	return PolicyOutcome{Verdict: pipeline.VerdictNeedsApproval, By: a.Policies[0]}, true
}

// completion is the kind of a record of a completion.
const completion = "completion"

// hypotheticalFrom returns the hypothetical call for a record, or the reason why there is none.
func hypotheticalFrom(c *audit.Call) (of pipeline.HypotheticalCall, unknown string) {
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
			return of, "its URI is incomplete"
		}
	case completion: // the record lacks the argument to complete
		of.Request.Kind, of.Request.Arguments, of.Unknown = call.Prompts, nil, policylang.PartArgs
	default:
		return of, "its kind is unknown"
	}
	if !c.WholeName {
		return of, "its name is incomplete"
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

// uriOf returns the URI of a read. For a template, the record holds the template and
// possibly the values.
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

// Trial finds the recorded calls that a candidate for the policies in service would decide
// differently than both the record and the policies in service. So a difference counts only when
// the policies that make it are new. Equal decisions about one principal and item count once, so that
// a caller cannot raise the number by repeating a call.
type Trial struct {
	Candidate Replay
	// Serving are the policies in service; nil if there are none.
	Serving *Replay
	// Changed counts the decisions, and Examples describes the first of them, without arguments.
	Changed  int
	Examples []string
	seen     map[changedDecision]bool
}

// changedDecision is what makes two changes equal.
type changedDecision struct {
	principal         [3]string // kind, issuer and ID
	kind, name, uri   string
	recorded, current pipeline.Verdict
}

// maxExamples bounds [Trial].Examples.
const maxExamples = 5

// Add compares one call.
func (t *Trial) Add(ctx context.Context, c *audit.Call) error {
	change, err := t.Candidate.Compare(ctx, c)
	if err != nil || change == nil {
		return err
	}
	if t.Serving != nil {
		serving, err := t.Serving.Compare(ctx, c)
		if err != nil || serving != nil && serving.Current.Verdict == change.Current.Verdict {
			return err
		}
	}
	who := c.Caller.Principal
	one := changedDecision{[3]string{string(who.Kind), who.Issuer, who.ID}, c.Kind, c.Name, c.URI, change.Recorded.Verdict, change.Current.Verdict}
	if t.seen[one] {
		return nil
	}
	if t.seen == nil {
		t.seen = map[changedDecision]bool{}
	}
	t.seen[one] = true
	if t.Changed++; len(t.Examples) < maxExamples {
		t.Examples = append(t.Examples, fmt.Sprintf("record %d, %q: recorded %s, with the bundle %s", c.Seq, truncate.Start(c.Name, maxShown), change.Recorded, change.Current))
	}
	return nil
}

// Comparison compares the decisions of two sets of policies about recorded calls, whatever was decided
// when the calls were made. The records only supply facts, so it shows the effect of an edit alone. It is
// not safe for concurrent use.
type Comparison struct {
	Serving, Candidate Evaluate
	// Counts is the result so far. A call that one of the two sets cannot decide is unknown.
	Counts Counts
}

// Difference is a recorded call that the candidate would decide differently than the policies in
// service.
type Difference struct {
	Call               *audit.Call
	Serving, Candidate PolicyOutcome
}

// Compare compares one call, and returns nil unless the decision differs.
func (p *Comparison) Compare(ctx context.Context, c *audit.Call) (*Difference, error) {
	serving, err := p.Serving.judge(ctx, c)
	if err != nil {
		return nil, err
	}
	candidate, err := p.Candidate.judge(ctx, c)
	if err != nil {
		return nil, err
	}
	both := candidate
	both.unknown, both.gone = cmp.Or(candidate.unknown, serving.unknown), candidate.gone || serving.gone
	if !p.Counts.add(c, both) {
		return nil, nil
	}
	if serving.current.Verdict != candidate.current.Verdict {
		p.Counts.Different++
		return &Difference{c, serving.current, candidate.current}, nil
	}
	p.Counts.same(serving.current, candidate.current)
	return nil, nil
}

// maxShown bounds a name in [Trial].Examples, in bytes.
const maxShown = 100
