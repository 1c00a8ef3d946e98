package codeact

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/content"
	"github.com/mcpd/mcpd/scripting"
)

// plan is the value of mode by which nothing is changed.
const plan = "plan"

// runner is the body of run_code.
type runner struct {
	*kit
	trial func(scripting.Source) error
}

// Run runs the program of the agent.
func (r *runner) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	code, _ := i.Args["code"].(string)
	mode, _ := i.Args["mode"].(string)
	src := scripting.Source{Name: RunCode, Kind: scripting.Code, Text: diag.WholeFile("code", code), Trial: r.trial}
	src.Objects, src.Members = namesOf(i.Survey.Catalog()).grant(r.tools(ctx, i.Survey))
	program, problems := scripting.Compile(src)
	if program == nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.ToolError, Message: scripting.Explain(src.Text, problems)}}, nil
	}
	ends, _ := ctx.Deadline()
	asked := &host{
		survey: i.Survey, tools: named(src.Objects), planning: mode == plan, ends: ends,
		most: r.block.MaxCalls, left: r.block.MaxCalls - len(i.Journal.Calls()), running: make(chan struct{}, r.block.MaxParallel),
	}
	outcome, err := i.Executor.Run(ctx, scripting.Call{
		Program: program, Seed: scripting.NewSeed(), Start: i.Began, Journal: i.Journal, Limits: i.Bounds, Kin: i.Kin, Depth: i.Depth,
	}, asked)
	if err != nil || outcome.Suspended != nil {
		return outcome, err
	}
	ran := report{Stdout: i.Host.Secrets.Redact(outcome.Stdout), Calls: asked.made(i.Journal), Notes: notes(problems)}
	if outcome.Failure != nil {
		return scripting.Outcome{Failure: ran.failure(outcome.Failure)}, nil
	}
	return ran.outcome(outcome.Result), nil
}

// named returns the names of tools that code may call.
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
		if p.Code == scripting.ImportRemoved {
			told = append(told, diag.Printable(p.Summary))
		}
	}
	return told
}

// report is what the caller is told of a run.
type report struct {
	Result json.RawMessage `json:"result,omitempty"`
	Stdout string          `json:"stdout"`
	Calls  []made          `json:"calls"`
	Notes  []string        `json:"notes,omitempty"`
}

// outcome is that of a program which has ended: content that it returns stands behind
// what is told of it.
func (r *report) outcome(result *scripting.Result) scripting.Outcome {
	r.Result = result.JSON
	// What bodies returned always encodes.
	encoded, _ := json.Marshal(r)
	if result.Kind != scripting.Content {
		return value(encoded)
	}
	told, blocks := content.Value(encoded), result.Content
	if more := strings.TrimSpace(string(blocks)); len(more) > len("[]") {
		told = append(append(told[:len(told)-1], ','), blocks[1:]...)
	}
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Content, JSON: encoded, Content: told}}
}

// failure is that of a program which has not: it tells how far it came.
func (r *report) failure(f *scripting.Failure) *scripting.Failure {
	var told strings.Builder
	told.WriteString(f.Explain())
	if f.Kind == scripting.Timeout {
		told.Reset() // the pipeline says so
	}
	if r.Stdout != "" {
		fmt.Fprintf(&told, "\nIt had printed:\n%s", strings.TrimSuffix(r.Stdout, "\n"))
	}
	if len(r.Calls) > 0 {
		told.WriteString("\nIt had made these calls, which are not undone:")
		for _, c := range r.Calls {
			fmt.Fprintf(&told, "\n- %s: %s", c.Tool, c.Outcome)
		}
	}
	for _, note := range r.Notes {
		told.WriteString("\n" + note)
	}
	// Plain data always encodes.
	details, _ := json.Marshal(r)
	failed := *f
	failed.Kind, failed.Message, failed.Details = scripting.ToolError, strings.TrimPrefix(told.String(), "\n"), details
	if f.Kind == scripting.Timeout || f.Kind == scripting.Canceled {
		failed.Kind = f.Kind
	}
	return &failed
}
