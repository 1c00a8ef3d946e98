package pipeline

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/asking"
	"github.com/mcpd/mcpd/internal/audit"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/plain"
	"github.com/mcpd/mcpd/policylang"
)

// consent is what one policy wants the user to consent to: its reason.
type consent struct {
	policy *catalog.Policy
	reason string
}

// maxShown bounds, in bytes, the arguments that a user is shown, and maxReasons the
// reasons.
const (
	maxShown   = 6 << 10
	maxReasons = 6 << 10
	// leastReason is how much of a reason is worth to be shown, in bytes.
	leastReason = 32
)

// maxConsents bounds how often the user is asked in one call: a reason that reads the
// time is another one in each leg, and could never be consented to.
const maxConsents = 3

// consentTo is the digest of what the user is asked to consent to, beside what every
// pause is bound to: the principal, the definition and the arguments.
func (x *execution) consentTo() [sha256.Size]byte {
	var told []byte
	for _, c := range x.consents {
		told = fmt.Appendf(told, "%q%q", c.policy.Name, c.reason)
	}
	return sha256.Sum256(told)
}

// askConsent asks the user to consent to the call. What cannot be asked is denied.
func (x *execution) askConsent(ctx context.Context, pause asking.Pause) (call.Result, *call.Error) {
	switch {
	case x.asksNobody():
		return call.Result{}, x.unasked(ctx, whyNested, "a call that another one makes cannot ask for it")
	case !x.req.Can.Form || x.req.Can.NoApproval:
		return call.Result{}, x.unasked(ctx, whyClient, "the client cannot be asked for it")
	case pause.Consent.Asked >= maxConsents:
		return call.Result{}, x.unasked(ctx, whyChanging, "the reason that its policy gives changes each time")
	}
	x.setApproval(audit.ApprovalUnasked, whyServer, [sha256.Size]byte{})
	open, err := pause.AskConsent(x.consentMessage(), x.consentTo())
	if err != nil {
		denied := x.unapproved(ctx, "the user cannot be asked to approve the call")
		denied.Cause = err
		return call.Result{}, denied
	}
	result, failure := x.ask(&pause, open)
	if failure == nil {
		x.setApproval(audit.ApprovalAsked, "", pause.Consent.To)
	}
	return result, failure
}

// unasked denies a call whose user cannot be asked, for the reason why not, which is why
// in one word.
func (x *execution) unasked(ctx context.Context, why, because string) *call.Error {
	x.setApproval(audit.ApprovalUnasked, why, [sha256.Size]byte{})
	x.recorded = "the call needs the approval of a user, and " + because
	return x.unapproved(ctx, x.recorded+": "+x.reasons("; "))
}

// refusedConsent denies a call that its user did not consent to.
func (x *execution) refusedConsent(ctx context.Context) *call.Error {
	return x.unapproved(ctx, "the user did not approve the call")
}

// unapproved tells the caller as much as all policies that want consent disclose.
func (x *execution) unapproved(ctx context.Context, reason string) *call.Error {
	if len(x.consents) == 0 { // a reload has removed them since the user was asked
		return &call.Error{Code: call.PolicyDenied, Message: reason, DeniedBy: ByApproval}
	}
	least := slices.MaxFunc(x.consents, func(a, b consent) int { return discretion(a.policy) - discretion(b.policy) })
	return x.denied(ctx, least.policy, policylang.Decision{Reason: reason})
}

// discretion is the higher the less a policy discloses.
func discretion(p *catalog.Policy) int {
	return slices.Index([]string{hclfile.DiscloseReason, hclfile.DiscloseGeneric, hclfile.DiscloseHide}, p.Disclose)
}

// reasons returns the reasons of all policies that want consent.
func (x *execution) reasons(between string) string {
	reasons := make([]string, len(x.consents))
	for i, c := range x.consents {
		reasons[i] = c.reason
	}
	return strings.Join(reasons, between)
}

// consentMessage is what the user is shown: why, what is called, and with which
// arguments, without those that are sensitive. None of it can pass for another part:
// what could move text or begin a line is escaped.
func (x *execution) consentMessage() string {
	var b strings.Builder
	left := maxReasons
	for i, c := range x.consents {
		// All but the last have half of what is left: reasons of tool files, which come
		// behind those of the operator, take nothing from them.
		share := left
		if i < len(x.consents)-1 {
			share /= 2
		}
		if share < leastReason {
			fmt.Fprintf(&b, "… and %d reasons more, which are not shown\n", len(x.consents)-i)
			break
		}
		shown := plain.Line(c.reason, share)
		b.WriteString(shown + "\n")
		left -= min(left, len(shown))
	}
	called := x.name()
	if x.req.Kind == call.Resources {
		called = x.req.Name
	}
	kind := x.entry.Kind.String()
	fmt.Fprintf(&b, "\n%s: %s", strings.ToUpper(kind[:1])+kind[1:], plain.Line(called, maxShown))
	if x.entry.Title != "" {
		fmt.Fprintf(&b, " (%s)", plain.Line(x.entry.Title, maxShown))
	}
	if x.req.Kind != call.Resources {
		fmt.Fprintf(&b, "\nArguments: %s", plain.Line(string(orNull(x.visibleArguments())), maxShown))
	}
	return b.String()
}
