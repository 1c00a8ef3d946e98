package replay

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/policylang"
)

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
var words = map[pipeline.Verdict]string{pipeline.Denied: "denied", pipeline.NeedsApproval: "held for approval", asked: "let ask its user"}

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
		return Decision{Verdict: pipeline.Allowed}, ""
	case c.Outcome == string(call.ExecutionError):
		return Decision{Verdict: pipeline.Allowed}, ""
	case c.DeniedBy == pipeline.ByDefault:
		return Decision{Verdict: pipeline.Denied, ByDefault: true}, ""
	case c.DeniedBy != "":
		return Decision{Verdict: pipeline.Denied, By: c.DeniedBy}, ""
	case c.Outcome == string(call.PolicyDenied) && c.Message == pipeline.Uncovered:
		return Decision{Verdict: pipeline.Denied, ByDefault: true}, ""
	case c.Outcome == string(call.InvalidInput):
		return Decision{Verdict: pipeline.Refused}, ""
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
		return Decision{Verdict: pipeline.Allowed}, true
	}
	return Decision{Verdict: pipeline.NeedsApproval, By: a.Policies[0]}, true
}

// caseOf returns the case of a record, or why there is none.
func caseOf(c *audit.Call) (of pipeline.Case, unknown string) {
	of = pipeline.Case{
		Request: call.Request{Name: c.Name, Arguments: c.Values, Caller: c.Caller, Via: call.Via(c.Via)},
		Began:   c.Began, ID: c.Call, Depth: c.Depth,
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
