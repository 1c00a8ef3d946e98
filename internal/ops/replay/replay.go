package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/policylang"
)

// maxNamed bounds the reasons and the names that are counted apart.
const maxNamed = 100

// Replay compares calls. It is for one goroutine.
type Replay struct {
	// Judge judges a call by the policies of today.
	Judge func(context.Context, pipeline.Case) (pipeline.Explanation, error)
	// Counts is what was found so far.
	Counts Counts
}

// Counts counts calls by what came of comparing them.
type Counts struct {
	// Calls are all; each of them is counted by one of the other four.
	Calls, Same, Different, Unknown, Gone int
	// OtherPolicy counts those of Same that another policy denies.
	OtherPolicy int
	// Reasons counts the unknown by why they are, and Names the gone by their names. What
	// is beyond a hundred is counted under "…".
	Reasons, Names map[string]int
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
	if unknown == "" || now.Verdict == pipeline.Denied && c.Outcome == audit.OutcomeInputRequired {
		unknown = doubt(c, before, now, &e)
	}
	switch {
	case unknown != "":
		return nil, r.unknown(unknown)
	case before.Verdict != now.Verdict && !unapproved(before, now, &e):
		r.Counts.Different++
		return &Change{c, before, now}, nil
	}
	if before.Verdict == pipeline.Denied && (before.By != now.By || before.ByDefault != now.ByDefault) {
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
	d := Decision{Verdict: e.Verdict, ByDefault: e.ByDefault}
	judged := c.Outcome == audit.OutcomeOK || before.Verdict == pipeline.Denied && !denies(e, before.By, false)
	approved := c.Approval != nil && c.Approval.State == audit.ApprovalGiven // as it would be today
	switch {
	case d.Verdict == pipeline.Allowed && judged && e.Shown != "",
		d.Verdict == pipeline.NeedsApproval && judged && approved && (e.Shown == pipeline.Denied || e.Shown == pipeline.Undecided):
		d.Verdict = e.Shown
	}
	if d.Verdict != pipeline.Denied && d.Verdict != pipeline.NeedsApproval {
		return d
	}
	for i := range e.Rulings {
		if e.Decides(i) && (d.Verdict == pipeline.NeedsApproval || i == e.Decider) {
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
	return before.Verdict == pipeline.Denied && now.Verdict == pipeline.NeedsApproval && slices.ContainsFunc(e.Rulings, func(r pipeline.Ruling) bool {
		return r.Policy.Name == before.By && r.Asked && r.Decision.Outcome == policylang.Consent
	})
}

// doubt returns why two decisions cannot be compared; "" when they can.
func doubt(c *audit.Call, before, now Decision, e *pipeline.Explanation) string {
	limit := before.By != "" && slices.Contains(e.Limits, before.By) && !denies(e, before.By, false) && !denies(e, before.By, true)
	switch {
	case now.Verdict == pipeline.Undecided:
		return lacking(e)
	case before.By == pipeline.InGo && !denies(e, pipeline.InGo, false):
		return "policies of the program that embedded the server denied it, and this one has none"
	case limit:
		return "a limit whose key could not be evaluated denied it"
	case before.Verdict == pipeline.Refused && now.Verdict != pipeline.Refused && (now.Ruling == nil || !now.Ruling.Early):
		return "its arguments were refused, so that policies were not asked about them"
	case now.Verdict == pipeline.Refused && before.Verdict != pipeline.Refused:
		return "its arguments do not fit any more"
	case before.Verdict == pipeline.Allowed && now.Verdict == pipeline.NeedsApproval && c.Approval == nil && (c.Leg != 1 || c.Outcome != audit.OutcomeOK):
		return "whether its user was to approve it, or has, is not written down"
	}
	return ""
}

// lacking says what a decision depends on that the record does not hold.
func lacking(e *pipeline.Explanation) string {
	for _, r := range e.Rulings {
		if !r.Asked || !r.Open() {
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
