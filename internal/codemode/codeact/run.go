package codeact

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/scripting"
)

// The values of mode. In mode plan nothing is changed. In mode approve the user approves the
// plan before the program runs.
const (
	modePlan    = "plan"
	modeApprove = "approve"
)

type runCodeHandler struct {
	*kit
	// executor is separate from the executor of files, which are trusted; agents are not. If
	// nil, nothing runs.
	executor   scripting.Executor
	trial      func(scripting.Source) error
	transpiler scripting.Transpiler
}

func (r *runCodeHandler) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	mode, _ := i.Args["mode"].(string)
	outcome, _, err := r.run(ctx, i, mode == modePlan)
	return outcome, err
}

var _ catalog.DryRunner = (*runCodeHandler)(nil)

// WantsDryRun reports whether the user needs to approve the plan of the program.
func (r *runCodeHandler) WantsDryRun(args map[string]any) bool { return args["mode"] == modeApprove }

// DryRun runs the program as in mode plan.
func (r *runCodeHandler) DryRun(ctx context.Context, i catalog.Invocation) ([]catalog.PlannedCall, scripting.Outcome, error) {
	outcome, asked, err := r.run(ctx, i, true)
	if err != nil || outcome.Failure != nil {
		return nil, outcome, err
	}
	return asked.writes(i.Journal), scripting.Outcome{}, nil
}

// noProcessMessage is the error without an executor.
const noProcessMessage = "programs cannot run here: this server has no separate processes for programs"

// run runs the program, or makes a dry run.
func (r *runCodeHandler) run(ctx context.Context, i catalog.Invocation, planning bool) (scripting.Outcome, *host, error) {
	if r.executor == nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.ToolError, Message: noProcessMessage}}, nil, nil
	}
	code, _ := i.Args["code"].(string)
	src := scripting.Source{Name: RunCode, Kind: scripting.Code, Text: diag.WholeFile("code", code), Trial: r.trial, Transpiler: r.transpiler}
	seen := r.tools(ctx, i.ToolAccess)
	src.Objects, src.Members = r.namesOf(i.ToolAccess.Catalog(), seen).grant(seen)
	program, problems, err := r.compile(ctx, src)
	if err != nil {
		return scripting.Outcome{}, nil, err
	}
	if program == nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.ToolError, Message: scripting.Explain(src.Text, problems)}}, nil, nil
	}
	ends, _ := ctx.Deadline()
	asked := &host{
		survey: i.ToolAccess, tools: objectNames(src.Objects), dryRun: planning, deadline: ends, approved: approvals(i), resumable: resumableCalls(i.Journal),
		maxCalls: r.block.MaxCalls, remaining: r.block.MaxCalls - i.Journal.ToolCallCount(), slots: make(chan struct{}, r.block.MaxParallel),
	}
	outcome, err := r.executor.Run(ctx, scripting.Call{
		Program: program, Seed: scripting.NewSeed(), Start: i.StartTime, Journal: i.Journal, Limits: i.Bounds, Tree: i.CallTree, Depth: i.Depth, Owner: i.Owner,
	}, asked)
	if err != nil || outcome.Suspended != nil {
		return outcome, asked, err
	}
	ran := report{Stdout: i.Host.Secrets.Redact(outcome.Stdout), Calls: asked.callReports(i.Journal), Notes: importNotes(problems), dryRun: planning}
	if outcome.Failure != nil {
		if planning && isNullError(outcome.Failure) {
			ran.skipped = asked.skippedTools(i.Journal)
		}
		return scripting.Outcome{Failure: ran.failureOf(outcome.Failure)}, asked, nil
	}
	return ran.outcome(outcome.Result), asked, nil
}

// approvals counts the calls that the user has approved and that the program has not made yet.
func approvals(i catalog.Invocation) map[[16]byte]int {
	left := map[[16]byte]int{}
	for _, w := range i.Approved {
		left[scripting.CallDigest(w.Tool, w.Arguments)]++
	}
	for digest := range left {
		left[digest] -= i.Journal.CountByDigest(digest)
	}
	return left
}

func objectNames(objects []scripting.Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	return names
}

// importNotes returns notes about changes to a program before it ran.
func importNotes(problems diag.List) (notes []string) {
	for _, p := range problems {
		if p.Code == scripting.ImportRemoved || p.Code == scripting.FenceRemoved {
			notes = append(notes, diag.Printable(p.Summary))
		}
	}
	return notes
}

type report struct {
	Result json.RawMessage `json:"result,omitempty"`
	Stdout string          `json:"stdout"`
	Calls  []callReport    `json:"calls"`
	Notes  []string        `json:"notes,omitempty"`
	// dryRun means that only read-only calls were made. skipped are the tools of skipped calls
	// that may have caused the failure, because their result was null.
	dryRun  bool
	skipped []string
}

// isNullError reports whether a program has failed because of a null value.
func isNullError(f *scripting.Failure) bool {
	return f.Kind == scripting.Thrown && f.Name == "TypeError" && (strings.Contains(f.Message, "null") || strings.Contains(f.Message, "coercible"))
}

// maxSkippedTools bounds the named tools with skipped calls.
const maxSkippedTools = 5

// advice explains how to handle skipped calls in a plan.
func (r *report) advice() string {
	if len(r.skipped) == 0 {
		return ""
	}
	tools := strings.Join(r.skipped[:min(len(r.skipped), maxSkippedTools)], ", ")
	return "\nIn a plan, calls that would change something are not made, and their result is null: " + tools + ". " +
		"Write the program so that it works without these results, as in result?.id, or run it in mode \"run\". Tools with a dry_run script return a result in a plan too."
}

// outcome returns the outcome of a completed program. Returned content follows the report.
func (r *report) outcome(result *scripting.Result) scripting.Outcome {
	r.Result = result.JSON
	encoded := encode(r)
	if result.Kind != scripting.Content {
		return value(encoded)
	}
	text, blocks := reply.ValueContent(encoded), result.Content
	if more := strings.TrimSpace(string(blocks)); len(more) > len("[]") {
		text = append(append(text[:len(text)-1], ','), blocks[1:]...)
	}
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Content, JSON: encoded, Content: text}}
}

// encode encodes plain data and results of scripts for models, without escaping <.
func encode(v any) json.RawMessage {
	text, _ := jsontext.Marshal(v) // such data always encodes
	return text
}

// callList lists the calls of a failed program. It merges equal consecutive calls.
func (r *report) callList() string {
	text := "\nIt made these calls, which are not undone:"
	if r.dryRun {
		text = "\nIt planned these calls. Only the read-only calls were made:"
	}
	for i := 0; i < len(r.Calls); {
		c, n := r.Calls[i], 0
		for ; i < len(r.Calls) && r.Calls[i].Tool == c.Tool && r.Calls[i].Outcome == c.Outcome; i++ {
			n++
		}
		text += "\n- " + c.Tool + ": " + c.Outcome
		if n > 1 {
			text += fmt.Sprintf(", %d times", n)
		}
	}
	return text
}

// failureOf returns the failure of a program, with its progress.
func (r *report) failureOf(f *scripting.Failure) *scripting.Failure {
	var text strings.Builder
	text.WriteString(f.Explain())
	if f.Kind == scripting.Timeout {
		text.Reset() // the pipeline reports it
	}
	text.WriteString(r.advice())
	if r.Stdout != "" {
		fmt.Fprintf(&text, "\nIt had printed:\n%s", strings.TrimSuffix(r.Stdout, "\n"))
	}
	if len(r.Calls) > 0 {
		text.WriteString(r.callList())
	}
	for _, note := range r.Notes {
		text.WriteString("\n" + note)
	}
	details := encode(r)
	failed := *f
	if f.Kind != scripting.Timeout {
		failed.Stack = nil // the message has it, in the words for agents
	}
	failed.Kind, failed.Message, failed.Details = scripting.ToolError, strings.TrimPrefix(text.String(), "\n"), details
	if f.Kind == scripting.Timeout || f.Kind == scripting.Canceled {
		failed.Kind = f.Kind
	}
	return &failed
}

func (h *host) recordSkipped(seq int, reply catalog.CodeReply, arguments json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.skipped == nil {
		h.skipped, h.arguments = map[int]catalog.CodeReply{}, map[int]json.RawMessage{}
	}
	h.skipped[seq], h.arguments[seq] = reply, arguments
}

// writes returns the skipped calls of a dry run, in call order.
func (h *host) writes(j *scripting.Journal) (all []catalog.PlannedCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.ToolCalls() {
		if planned, is := h.skipped[c.Seq]; is {
			all = append(all, catalog.PlannedCall{Tool: c.Tool, Arguments: h.arguments[c.Seq], RedactedArguments: planned.RedactedArguments, Approval: planned.Approval})
		}
	}
	return all
}

// maxArguments bounds the reported arguments of one call, in bytes.
const maxArguments = 16 << 10

// callReport reports a call of a program to its caller.
type callReport struct {
	Tool string `json:"tool"`
	// Outcome is "ok", an error code, "unknown" if the run ended first, or in a dry run
	// "dry_run" or "planned".
	Outcome string `json:"outcome"`
	// Arguments, without sensitive ones, and Approval are set for a skipped call.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Approval  bool            `json:"approval,omitempty"`
}

func (h *host) callReports(j *scripting.Journal) []callReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := []callReport{}
	for _, c := range j.ToolCalls() {
		m := callReport{Tool: c.Tool, Outcome: c.Code}
		planned, is := h.skipped[c.Seq]
		switch {
		case !c.Done || h.interrupted[c.Seq]:
			m.Outcome = "unknown"
		case is:
			if m.Outcome, m.Approval = planned.Mode, planned.Approval; len(planned.RedactedArguments) <= maxArguments {
				m.Arguments = planned.RedactedArguments
			}
		case c.Code == "":
			m.Outcome = "ok"
		}
		calls = append(calls, m)
	}
	return calls
}

// skippedTools returns the tools of skipped calls with a null result, without duplicates, in
// call order.
func (h *host) skippedTools(j *scripting.Journal) (tools []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.ToolCalls() {
		if h.skipped[c.Seq].Mode == "planned" && c.Done && !slices.Contains(tools, c.Tool) {
			tools = append(tools, c.Tool)
		}
	}
	return tools
}
