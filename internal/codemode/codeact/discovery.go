package codeact

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/codemode/toolprompt"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/scripting"
)

type codeModeHandler struct{ *kit }

// Run returns the prompt with instructions and the tools of the caller.
func (h *codeModeHandler) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	options := toolprompt.Options{Search: h.block.Search, Limits: toolprompt.Limits{
		Time: h.block.Timeout, Calls: h.block.MaxCalls, Running: h.block.MaxParallel, Output: h.block.MaxStdout, Memory: int(h.block.Memory),
	}}
	if text, _ := i.Args["budget"].(string); text != "" {
		budget, err := strconv.Atoi(text)
		if err != nil || budget < 1 {
			return failed("budget is a number of tokens, such as 4000"), nil
		}
		options.Budget = budget
	}
	seen := h.tools(ctx, i.ToolAccess)
	text := toolprompt.Prompt(h.namesOf(i.ToolAccess.Catalog(), seen).promptTools(seen), options)
	return value(reply.StaticMessages("", []reply.Message{{Role: "user", Text: &text}})), nil
}

type searchHandler struct{ *kit }

type hit struct {
	Name        string `json:"name"`
	Call        string `json:"call"`
	Description string `json:"description,omitempty"`
}

// Run finds tools that the caller may call.
func (s *searchHandler) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	query, _ := i.Args["query"].(string)
	limit, _ := i.Args["limit"].(int64)
	c := i.ToolAccess.Catalog()
	index, seen := s.indexOf(c), s.tools(ctx, i.ToolAccess)
	names := s.namesOf(c, seen)
	visible := func(at int) bool { return slices.Contains(seen, index.entries[at]) }
	if len(seen) > 16 {
		visible = membership(index.entries, seen)
	}
	hits := []hit{}
	for _, found := range index.search.Search(query, int(limit), visible) {
		t := names.promptTool(index.entries[found.Index])
		hits = append(hits, hit{t.Name, t.Call(), toolprompt.FirstSentence(t.Description)})
	}
	return value(encode(map[string]any{"tools": hits})), nil
}

// membership returns a function that reports whether an element of all is in some. Both have
// the same order.
func membership(all, some []*catalog.Entry) func(int) bool {
	is := make([]bool, len(all))
	at := 0
	for i, e := range all {
		if at < len(some) && some[at] == e {
			is[i] = true
			at++
		}
	}
	return func(i int) bool { return is[i] }
}

type describeHandler struct{ *kit }

// Run describes a tool that the caller may call, by full name or by its name in code.
func (d *describeHandler) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	name, _ := i.Args["name"].(string)
	seen := d.tools(ctx, i.ToolAccess)
	names := d.namesOf(i.ToolAccess.Catalog(), seen)
	known := make([]string, len(seen))
	for n, e := range seen {
		if t := names.promptTool(e); e.Name == name || t.Call() == name {
			text, _ := json.Marshal(toolprompt.Describe(t)) // text always encodes
			return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Text, JSON: text}}, nil
		}
		known[n] = e.Name
	}
	message := fmt.Sprintf("no tool is named %.128q", name)
	if meant := diag.DidYouMeanLonger(name, known); meant != "" {
		message += "; " + meant
	}
	return failed("%s", message), nil
}

// callToolHandler handles call_tool only if that is asked to call itself: all other calls run
// as calls of the named tool.
type callToolHandler struct{}

func (callToolHandler) Run(context.Context, catalog.Invocation) (scripting.Outcome, error) {
	return failed("%s calls other tools, not itself", CallTool), nil
}

// value returns an outcome with JSON.
func value(encoded json.RawMessage) scripting.Outcome {
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: encoded}}
}

// failed returns an outcome with an error.
func failed(format string, args ...any) scripting.Outcome {
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: fmt.Sprintf(format, args...)}}
}
