package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/policylang"
)

// approvalReason is the reason of one policy that requires approval, and whether it was truncated.
type approvalReason struct {
	policy *catalog.Policy
	reason string
	cut    bool
}

// maxShown bounds the arguments in an approval message in bytes, and maxReasons the reasons. A call
// that exceeds them is denied: a user cannot approve arguments without seeing them.
const (
	maxShown   = 6 << 10
	maxReasons = 6 << 10
)

// maxApprovalRounds bounds how often the user is asked in one call. A reason that contains the time
// differs in each leg, and could never be approved.
const maxApprovalRounds = 3

// digest returns the hash of the question. The suspension is also bound to the principal, the
// definition and the arguments.
func (a *approval) digest() [sha256.Size]byte {
	var question []byte
	for _, c := range a.reasons {
		question = fmt.Appendf(question, "%q%q", c.policy.Name, c.reason)
	}
	return sha256.Sum256(question)
}

// requestApproval asks the user to approve the call. It denies the call if it cannot ask.
func (x *execution) requestApproval(ctx context.Context, pause suspend.Suspension) (call.Result, *call.Error) {
	switch {
	case x.cannotRequestInput():
		return call.Result{}, x.approvalUnavailable(ctx, reasonNested, "a nested call cannot request it")
	case !x.req.Can.Form || x.req.Can.NoApproval:
		return call.Result{}, x.approvalUnavailable(ctx, reasonClient, "the client does not support it")
	case pause.Consent.Asked >= maxApprovalRounds:
		return call.Result{}, x.approvalUnavailable(ctx, reasonChanging, "the reason of its policy changes with each evaluation")
	}
	message, complete := x.approvalMessage()
	if !complete {
		x.approval.set(audit.ApprovalUnavailable, reasonLong, [sha256.Size]byte{})
		return call.Result{}, x.approvalError(ctx, "the call needs the approval of a user, but the question is too long to show; shorten the arguments")
	}
	x.approval.set(audit.ApprovalUnavailable, reasonServer, [sha256.Size]byte{})
	open, err := pause.RequestApproval(message, x.approval.digest())
	if err != nil {
		denied := x.approvalError(ctx, "the user cannot be asked to approve the call")
		denied.Cause = err
		return call.Result{}, denied
	}
	result, failure := x.requestInput(&pause, open)
	if failure == nil {
		x.approval.set(audit.ApprovalRequested, "", pause.Consent.To)
	}
	return result, failure
}

// approvalUnavailable denies a call that no user can approve. reason is the audit value, message the
// text.
func (x *execution) approvalUnavailable(ctx context.Context, reason, message string) *call.Error {
	x.approval.set(audit.ApprovalUnavailable, reason, [sha256.Size]byte{})
	x.approval.auditMessage = "the call needs the approval of a user, and " + message
	return x.approvalError(ctx, x.approval.auditMessage+": "+x.approval.joinReasons("; "))
}

// approvalError discloses only what all policies that require approval disclose.
func (x *execution) approvalError(ctx context.Context, reason string) *call.Error {
	if len(x.approval.reasons) == 0 { // a reload has removed them since the user was asked
		return &call.Error{Code: call.PolicyDenied, Message: reason, DeniedBy: DeniedByApproval}
	}
	strictest := slices.MaxFunc(x.approval.reasons, func(a, b approvalReason) int { return disclosureRank(a.policy) - disclosureRank(b.policy) })
	return x.denied(ctx, strictest.policy, policylang.Decision{Reason: reason})
}

// disclosureRank returns a number that is higher if a policy discloses less.
func disclosureRank(p *catalog.Policy) int {
	return slices.Index([]string{definition.DiscloseReason, definition.DiscloseGeneric, definition.DiscloseHide}, p.Disclose)
}

func (a *approval) joinReasons(separator string) string {
	reasons := make([]string, len(a.reasons))
	for i, c := range a.reasons {
		reasons[i] = c.reason
	}
	return strings.Join(reasons, separator)
}

// approvalMessage returns the text for the user: the reasons, the item, and the arguments without
// sensitive ones. Line breaks and invisible characters are escaped, so that no part can imitate
// another. fits is false if any part was truncated.
func (x *execution) approvalMessage() (message string, fits bool) {
	var b strings.Builder
	fits = true
	line := func(text string, limit int) (length int) {
		shown, complete := safetext.Whole(text, limit)
		fits = fits && complete
		b.WriteString(shown)
		return len(shown)
	}
	remaining := maxReasons
	for _, c := range x.approval.reasons {
		fits = fits && !c.cut && remaining > 0
		remaining -= line(c.reason, max(0, remaining))
		b.WriteString("\n")
	}
	called := x.name()
	if x.req.Kind == call.Resources {
		called = x.req.Name
	}
	kind := x.entry.Kind.String()
	fmt.Fprintf(&b, "\n%s: ", strings.ToUpper(kind[:1])+kind[1:])
	line(called, maxShown)
	if x.entry.Title != "" {
		b.WriteString(" (")
		line(x.entry.Title, maxShown)
		b.WriteString(")")
	}
	if x.req.Kind != call.Resources {
		b.WriteString("\nArguments: ")
		line(string(orNull(x.visibleArguments())), maxShown)
	}
	return b.String(), fits
}

// The modes of a call in a dry run.
const (
	dryRunExecuted = "ran"     // it only reads, and was made
	dryRunHandled  = "dry_run" // its dry_run handler was run
	dryRunSkipped  = "planned" // policies were evaluated, and nothing was run
)

type dryRun struct {
	mode     string
	approval bool
	// reading reports that the handler of a read-only tool makes this call. The handler runs
	// normally, so its result may be cached, and must not contain simulated results.
	reading bool
}

// nested returns the dry run of the calls that the handler makes; nil if the call itself is no dry
// run.
func (d *dryRun) nested() *dryRun {
	if d == nil {
		return nil
	}
	return &dryRun{reading: d.mode == dryRunExecuted}
}

// executes reports whether a call is made normally: it only reads, and needs no approval.
func (d *dryRun) executes(x *execution) bool {
	d.approval = len(x.approval.reasons) > 0
	if x.entry.Facts.ReadOnly && !d.approval {
		d.mode = dryRunExecuted
		return true
	}
	return false
}

// isDryRun reports whether the call was planned but not made.
func (x *execution) isDryRun() bool {
	return x.dryRun != nil && x.dryRun.mode != dryRunExecuted && x.dryRun.mode != ""
}

// runDry returns the result of a call that is not made. No limit is charged.
func (x *execution) runDry(ctx context.Context, _ policylang.Input) (call.Result, *call.Error) {
	if x.dryRun.reading {
		return call.Result{}, newError(call.ExecutionError, nil, "in a plan, a read-only tool cannot call %q, which is not read-only", x.entry.Name)
	}
	x.dryRun.mode, x.approval.reasons = dryRunSkipped, nil
	if x.entry.DryRun == nil {
		return call.Result{Value: orNull(nil), Content: reply.NoContent()}, nil
	}
	x.dryRun.mode, x.handler = dryRunHandled, x.entry.DryRun
	return x.runHandler(ctx)
}

// toolAccess gives agent code the tools that its caller may call.
type toolAccess struct{ x *execution }

func (a toolAccess) Tools(ctx context.Context) []*catalog.Entry {
	facts := policylang.Input{
		Caller: a.x.req.Caller, Now: a.x.startTime,
		Call: policylang.CallFacts{Via: string(call.ViaCode), Depth: a.x.position.Depth() + 1, Parent: a.x.policyName()},
	}
	entries, hidden := a.x.catalog.Entries[call.Tools], a.x.catalog.HiddenMask(ctx, call.Tools, facts)
	seen := make([]*catalog.Entry, 0, len(entries))
	for i, e := range entries {
		if (hidden == nil || hidden[i] == 0) && !e.CallsAllTools && !e.Alias {
			seen = append(seen, e)
		}
	}
	return seen
}

func (a toolAccess) Catalog() *catalog.Catalog { return a.x.catalog }

func (a toolAccess) Call(ctx context.Context, r catalog.CodeCall) (catalog.CodeReply, error) {
	if a.x.mocks != nil {
		return a.mockedReply(r)
	}
	request := call.Request{Name: r.Name, Arguments: r.Arguments, Caller: a.x.req.Caller, Via: call.ViaCode, Can: a.x.req.Can, Resume: r.Resume}
	var p *dryRun
	if r.DryRun {
		p = &dryRun{}
	}
	result, err := a.x.callNested(ctx, request, p, r.Approved)
	if err != nil {
		return catalog.CodeReply{}, err
	}
	reply := catalog.CodeReply{Value: valueOf(result), Ask: result.Ask}
	if p != nil {
		reply.Mode, reply.RedactedArguments, reply.Approval = p.mode, a.redactedArguments(r), p.approval
	}
	return reply, nil
}

// redactedArguments returns valid arguments for display.
func (a toolAccess) redactedArguments(r catalog.CodeCall) json.RawMessage {
	if entry := a.x.catalog.Entry(call.Tools, r.Name); entry != nil {
		return redact.Arguments(r.Arguments, true, entry.Sensitive, entry.InputNames)
	}
	return nil
}

// mockedReply returns the mocked result of a tool in a test, without its handler and policies.
func (a toolAccess) mockedReply(r catalog.CodeCall) (catalog.CodeReply, error) {
	reply := catalog.CodeReply{RedactedArguments: a.redactedArguments(r)}
	entry := a.x.catalog.Entry(call.Tools, r.Name)
	switch {
	case !r.DryRun:
	case entry == nil || entry.Facts.ReadOnly:
		reply.Mode = dryRunExecuted
	case entry.DryRun == nil:
		reply.Value, reply.Mode = orNull(nil), dryRunSkipped
		return reply, nil
	default:
		reply.Mode = dryRunHandled
	}
	var err error
	reply.Value, err = a.x.mocks.CallTool(r.Name)
	return reply, err
}
