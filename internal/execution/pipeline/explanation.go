package pipeline

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// Case is a call that is judged and not made.
type Case struct {
	Request call.Request
	// Began is when the call is supposed to begin; zero means now.
	Began time.Time
	// ID is that of the call; empty means a new one. Depth and Parent are what policies
	// know of the call that makes it.
	ID     string
	Depth  int
	Parent string
	// Unknown are the parts of the call of which not all is known.
	Unknown policylang.Parts
	// Returned is what the body is supposed to return: the value of a tool, or the reply of
	// anything else. Nil when that is not known.
	Returned json.RawMessage
}

// Verdict is what policies say of a call, all of them together.
type Verdict string

// The verdicts.
const (
	Allowed       Verdict = "allowed"
	Denied        Verdict = "denied"
	NeedsApproval Verdict = "needs_approval"
	// Refused is a call that ends for another reason than a policy: there is nothing of its
	// name, or its arguments do not fit.
	Refused Verdict = "refused"
	// Undecided depends on what is not known.
	Undecided Verdict = "unknown"
)

// Explanation is how a call is judged.
type Explanation struct {
	// Kind and Name are those of what is called, and Found says that there is such a thing.
	Kind  call.Kind
	Name  string
	Found bool
	// Verdict says whether the call may be made, and Shown whether what it returns may be
	// seen; Shown is empty when the call is not made, or nobody judges that.
	Verdict, Shown Verdict
	// Decider is the place in Rulings of the policy that has ended the call, or -1.
	Decider int
	// Error is what the caller is told when the call ends so; nil when it is made.
	Error *call.Error
	// DenyByDefault says that calls are denied that no policy allows, and ByDefault that
	// this one is.
	DenyByDefault, ByDefault bool
	// Rulings are those of all policies that cover what is called, in the order in which
	// they are asked, those that judge results last.
	Rulings []Ruling
	// Limits are the names of those that the call would be counted against.
	Limits []string
	// Unknown are the parts of the call of which not all is known.
	Unknown policylang.Parts
}

// Ruling is what one policy says of a call.
type Ruling struct {
	// Policy is that of the snapshot which serves, and is not to be changed.
	Policy *catalog.Policy
	// OnResult says that the policy judges what the call returns.
	OnResult bool
	// Asked says that the call came to this policy. Of one that was not asked, Decision is
	// what it would have said.
	Asked bool
	// Early says that the policy decided before the arguments were looked at.
	Early    bool
	Decision policylang.Decision
}

// Open reports whether a decision depends on what is not known.
func (r Ruling) Open() bool { return r.Decision.Outcome == policylang.Unknown }

// Decides reports whether the ruling at a place decides: it has ended the call, or holds
// it until the user approves.
func (e *Explanation) Decides(place int) bool {
	r := e.Rulings[place]
	return place == e.Decider || e.Verdict == NeedsApproval && r.Asked && r.Decision.Outcome == policylang.Consent
}

// verdicts sums up what was heard of a call that has ended with err.
func (h *hearing) verdicts(e *Explanation, consents int, err *call.Error) {
	isOpen := func(onResult bool) bool {
		return slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult == onResult && r.Asked && r.Open() })
	}
	switch {
	case h.let && isOpen(false):
		e.Verdict = Undecided
	case h.let && consents > 0:
		e.Verdict = NeedsApproval
	case h.let:
		e.Verdict = Allowed
	default:
		e.Verdict = verdictOf(err)
	}
	switch {
	case !h.let || !slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult }) && err == nil:
	case err != nil:
		e.Shown = verdictOf(err)
	case isOpen(true):
		e.Shown = Undecided
	default:
		e.Shown = Allowed
	}
}

// verdictOf returns how a call has ended that has an error.
func verdictOf(err *call.Error) Verdict {
	if err != nil && (err.Code == call.PolicyDenied || err.DeniedBy != "") {
		return Denied
	}
	return Refused
}
