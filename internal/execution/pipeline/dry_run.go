package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// DeniedByPlan is the DeniedBy value for the plan of a program. It stands for the policies of its
// calls.
const DeniedByPlan = "(plan)"

// planPolicy is the policy that requires the approval of a plan.
var planPolicy = catalog.Policy{Name: DeniedByPlan, Disclose: definition.DiscloseReason, Asks: true}

// requestPlanApproval runs a dry run of a handler that wants one, once per call. If calls of the
// plan need approval, it adds a reason to approve them. The approval is valid for these calls of
// this program only.
func (x *execution) requestPlanApproval(ctx context.Context, pause *suspend.Suspension) *call.Error {
	r, ok := x.handler.(catalog.DryRunner)
	if !ok || x.dryRun != nil || !r.WantsDryRun(x.args) {
		return nil
	}
	if pause.Plan == nil {
		writes, err := x.planCalls(ctx, r, *pause)
		if err != nil {
			return err
		}
		pause.Plan = encode(writes)
	}
	var writes []catalog.PlannedCall
	if err := json.Unmarshal(pause.Plan, &writes); err != nil {
		return newError(call.ExecutionError, err, "the plan of the program cannot be read")
	}
	var calls []string
	for _, w := range writes {
		if w.Approval {
			x.approval.writes = append(x.approval.writes, w)
		}
		calls = append(calls, fmt.Sprintf("%s(%s)", w.Tool, w.RedactedArguments))
	}
	if len(x.approval.writes) == 0 {
		return nil
	}
	reason := "The program is going to make these calls: " + strings.Join(calls, "; ")
	if len(reason) > maxReasons {
		return newError(call.PolicyDenied, nil, "the program makes more calls than a user can approve at once; approve them one by one with mode \"run\", or split it")
	}
	x.approval.reasons = append(x.approval.reasons, approvalReason{&planPolicy, x.redact(reason), false})
	return nil
}

// planCalls runs a dry run, and returns the calls that it did not make.
func (x *execution) planCalls(ctx context.Context, r catalog.DryRunner, pause suspend.Suspension) ([]catalog.PlannedCall, *call.Error) {
	bounded := lazyctx.WithTimeout(ctx, x.entry.Timeout)
	defer bounded.Cancel(nil)
	x.position.SetCancel(bounded.Cancel)
	pause.Journal = scripting.NewJournal()
	writes, outcome, err := r.DryRun(bounded, x.invocation(pause))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, canceled(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, x.timedOut(nil)
	case errors.Is(err, scripting.ErrOverloaded):
		return nil, overloaded()
	case err != nil:
		return nil, newError(call.ExecutionError, fmt.Errorf("dry run: %w", err), "the dry run of the %s failed", x.entry.Kind)
	case outcome.Failure != nil:
		return nil, x.withTrace(x.failure(ctx, outcome.Failure))
	case writes == nil:
		writes = []catalog.PlannedCall{}
	}
	return writes, nil
}
