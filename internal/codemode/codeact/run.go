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

// The values of mode: by plan nothing is changed, and by approve the program is rehearsed
// so, its user approves what would be changed, and then it is run.
const (
	plan    = "plan"
	approve = "approve"
)

type runner struct {
	*kit
	// executor is not that of bodies: files are trusted, and agents are not. Nil runs nothing.
	executor   scripting.Executor
	trial      func(scripting.Source) error
	transpiler scripting.Transpiler
}

func (r *runner) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	mode, _ := i.Args["mode"].(string)
	outcome, _, err := r.run(ctx, i, mode == plan)
	return outcome, err
}

// Rehearses reports whether the user of the program is to approve its plan.
func (r *runner) Rehearses(args map[string]any) bool { return args["mode"] == approve }

// Rehearse runs the program as mode plan does.
func (r *runner) Rehearse(ctx context.Context, i catalog.Invocation) ([]catalog.PlannedCall, scripting.Outcome, error) {
	outcome, asked, err := r.run(ctx, i, true)
	if err != nil || outcome.Failure != nil {
		return nil, outcome, err
	}
	return asked.writes(i.Journal), scripting.Outcome{}, nil
}

// noProcess refuses programs where nothing is there to run them.
const noProcess = "no program can be run here: this server has no process apart from its own for programs"

// run runs the program, or rehearses it.
func (r *runner) run(ctx context.Context, i catalog.Invocation, planning bool) (scripting.Outcome, *host, error) {
	if r.executor == nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.ToolError, Message: noProcess}}, nil, nil
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
		survey: i.ToolAccess, tools: named(src.Objects), planning: planning, ends: ends, approved: approvals(i), answered: answered(i.Journal),
		most: r.block.MaxCalls, left: r.block.MaxCalls - i.Journal.ToolCallCount(), running: make(chan struct{}, r.block.MaxParallel),
	}
	outcome, err := r.executor.Run(ctx, scripting.Call{
		Program: program, Seed: scripting.NewSeed(), Start: i.StartTime, Journal: i.Journal, Limits: i.Bounds, Tree: i.CallTree, Depth: i.Depth, Owner: i.Owner,
	}, asked)
	if err != nil || outcome.Suspended != nil {
		return outcome, asked, err
	}
	ran := report{Stdout: i.Host.Secrets.Redact(outcome.Stdout), Calls: asked.made(i.Journal), Notes: notes(problems), planned: planning}
	if outcome.Failure != nil {
		if planning && ofNothing(outcome.Failure) {
			ran.unmade = asked.unmade(i.Journal)
		}
		return scripting.Outcome{Failure: ran.failure(outcome.Failure)}, asked, nil
	}
	return ran.outcome(outcome.Result), asked, nil
}

// approvals counts the calls that the user has approved and that the program has not made
// yet.
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

func named(objects []scripting.Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	return names
}

// notes tells what was done about a program before it ran.
func notes(problems diag.List) (told []string) {
	for _, p := range problems {
		if p.Code == scripting.ImportRemoved || p.Code == scripting.FenceRemoved {
			told = append(told, diag.Printable(p.Summary))
		}
	}
	return told
}

type report struct {
	Result json.RawMessage `json:"result,omitempty"`
	Stdout string          `json:"stdout"`
	Calls  []made          `json:"calls"`
	Notes  []string        `json:"notes,omitempty"`
	// planned says that only calls which read were made, and unmade are the tools of those
	// that were not and whose null may be why the program has failed.
	planned bool
	unmade  []string
}

// ofNothing reports whether a program has failed as it took nothing for something.
func ofNothing(f *scripting.Failure) bool {
	return f.Kind == scripting.Thrown && f.Name == "TypeError" && (strings.Contains(f.Message, "null") || strings.Contains(f.Message, "coercible"))
}

// maxUnmade bounds the tools that are named of those whose calls were not made.
const maxUnmade = 5

// advice says what to do about a program that needs the results of calls which its plan does
// not make.
func (r *report) advice() string {
	if len(r.unmade) == 0 {
		return ""
	}
	tools := strings.Join(r.unmade[:min(len(r.unmade), maxUnmade)], ", ")
	return "\nIn a plan, calls that would change something are not made, and their result is null: " + tools + ". " +
		"Write the program so that it does without these results, as in result?.id, or run it in mode \"run\"; a tool that has a dry_run body has a result in a plan, too."
}

// outcome is that of a program which has ended: content that it returns stands behind
// what is told of it.
func (r *report) outcome(result *scripting.Result) scripting.Outcome {
	r.Result = result.JSON
	encoded := encode(r)
	if result.Kind != scripting.Content {
		return value(encoded)
	}
	told, blocks := reply.ValueContent(encoded), result.Content
	if more := strings.TrimSpace(string(blocks)); len(more) > len("[]") {
		told = append(append(told[:len(told)-1], ','), blocks[1:]...)
	}
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Content, JSON: encoded, Content: told}}
}

// encode encodes plain data, and what bodies returned, for models: a < is one.
func encode(v any) json.RawMessage {
	text, _ := jsontext.Marshal(v) // such data always encodes
	return text
}

// calls are what a program has called until it failed, several alike in a row as one.
func (r *report) calls() string {
	told := "\nIt had made these calls, which are not undone:"
	if r.planned {
		told = "\nIt had planned these calls, of which only those that read were made:"
	}
	for i := 0; i < len(r.Calls); {
		c, n := r.Calls[i], 0
		for ; i < len(r.Calls) && r.Calls[i].Tool == c.Tool && r.Calls[i].Outcome == c.Outcome; i++ {
			n++
		}
		told += "\n- " + c.Tool + ": " + c.Outcome
		if n > 1 {
			told += fmt.Sprintf(", %d times", n)
		}
	}
	return told
}

// failure is that of a program which has not: it tells how far it came.
func (r *report) failure(f *scripting.Failure) *scripting.Failure {
	var told strings.Builder
	told.WriteString(f.Explain())
	if f.Kind == scripting.Timeout {
		told.Reset() // the pipeline says so
	}
	told.WriteString(r.advice())
	if r.Stdout != "" {
		fmt.Fprintf(&told, "\nIt had printed:\n%s", strings.TrimSuffix(r.Stdout, "\n"))
	}
	if len(r.Calls) > 0 {
		told.WriteString(r.calls())
	}
	for _, note := range r.Notes {
		told.WriteString("\n" + note)
	}
	details := encode(r)
	failed := *f
	if f.Kind != scripting.Timeout {
		failed.Stack = nil // the message has it, in the words for agents
	}
	failed.Kind, failed.Message, failed.Details = scripting.ToolError, strings.TrimPrefix(told.String(), "\n"), details
	if f.Kind == scripting.Timeout || f.Kind == scripting.Canceled {
		failed.Kind = f.Kind
	}
	return &failed
}

func (h *host) plan(seq int, reply catalog.CodeReply, arguments json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.planned == nil {
		h.planned, h.arguments = map[int]catalog.CodeReply{}, map[int]json.RawMessage{}
	}
	h.planned[seq], h.arguments[seq] = reply, arguments
}

// writes are the calls that a rehearsal has not made, in the order of asking.
func (h *host) writes(j *scripting.Journal) (all []catalog.PlannedCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.ToolCalls() {
		if planned, is := h.planned[c.Seq]; is {
			all = append(all, catalog.PlannedCall{Tool: c.Tool, Arguments: h.arguments[c.Seq], RedactedArguments: planned.RedactedArguments, Approval: planned.Approval})
		}
	}
	return all
}

// maxArguments bounds what is told of the arguments of one call, in bytes.
const maxArguments = 16 << 10

// made is a call of a program, as its caller is told.
type made struct {
	Tool string `json:"tool"`
	// Outcome is "ok", the code of an error, "unknown" where the run ended first, or in a
	// rehearsal "dry_run" or "planned".
	Outcome string `json:"outcome"`
	// Arguments, without those that are sensitive, and Approval are those of a call that was
	// not made.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Approval  bool            `json:"approval,omitempty"`
}

func (h *host) made(j *scripting.Journal) []made {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := []made{}
	for _, c := range j.ToolCalls() {
		m := made{Tool: c.Tool, Outcome: c.Code}
		planned, is := h.planned[c.Seq]
		switch {
		case !c.Done || h.cut[c.Seq]:
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

// unmade returns the tools of calls that a rehearsal has not made, and whose results are null
// therefore, each once and in the order of asking.
func (h *host) unmade(j *scripting.Journal) (tools []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range j.ToolCalls() {
		if h.planned[c.Seq].Mode == "planned" && c.Done && !slices.Contains(tools, c.Tool) {
			tools = append(tools, c.Tool)
		}
	}
	return tools
}
