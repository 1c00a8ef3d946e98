package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// What the asking tools and items ask.
const (
	nameForm = `{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`
	capital  = `{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}`
	door     = `{"mode":"url","message":"Sign in","url":"https://example.com/in","elicitationId":"e-1"}`
)

// Asking returns tools that ask their client: for a name; for a name, a text
// and its roots at once; twice, one after the other; to go elsewhere; and for
// what it cannot be asked. The state of each is "state of " and its name.
func Asking() []Tool {
	form := call.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	sample := call.AskRequest{Key: "capital", Method: "sampling/createMessage", Params: json.RawMessage(capital)}
	roots := call.AskRequest{Key: "roots", Method: "roots/list", Params: json.RawMessage("{}")}
	elsewhere := call.AskRequest{Key: "door", Method: "elicitation/create", Params: json.RawMessage(door)}
	return []Tool{
		{ToolInfo: describe("ask", noInput), Run: asks(form)},
		{ToolInfo: describe("ask_all", noInput), Run: asks(form, sample, roots)},
		{ToolInfo: describe("ask_twice", noInput), Run: askTwice(form, sample)},
		{ToolInfo: describe("ask_elsewhere", noInput), Run: asks(elsewhere)},
		{ToolInfo: describe("ask_roots", noInput), Run: asks(roots)},
		{ToolInfo: describe("ask_badly", noInput), Run: asks(call.AskRequest{Key: "x", Method: "ping"})},
	}
}

// AskingItems returns a resource and a prompt that ask for a name.
func AskingItems() []Item {
	form := call.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	tell := func(before, after string) Run {
		return func(ctx context.Context, r call.Request) call.Result {
			response := asks(form)(ctx, r)
			response.Reply = json.RawMessage(before + string(response.Value) + after)
			return response
		}
	}
	return []Item{
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://asks", Name: "asks", Size: -1})),
			Run: tell(`{"contents":[{"uri":"test://asks","text":`, `}]}`)},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "asks"})),
			Run: tell(`{"messages":[{"role":"user","content":{"type":"text","text":`, `}}]}`)},
	}
}

// asks asks until everything is answered, and tells the answers.
func asks(requests ...call.AskRequest) Run {
	return func(_ context.Context, r call.Request) call.Result {
		state := "state of " + r.Name
		if r.Resume != nil && r.Resume.State != state {
			return call.Result{Err: &call.Error{
				Code: call.InvalidInput, Message: "state", RPC: &call.RPCError{Code: -32602, Message: "the state is not valid"},
			}}
		}
		if r.Resume == nil || !answered(r.Resume, requests) {
			return call.Result{Ask: &call.Ask{Requests: requests, State: state}}
		}
		return told(r.Resume, requests)
	}
}

// askTwice asks the second question once the first is answered.
func askTwice(first, second call.AskRequest) Run {
	return func(_ context.Context, r call.Request) call.Result {
		switch {
		case r.Resume == nil:
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{first}, State: "1"}}
		case r.Resume.State == "1":
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{second}, State: "2"}}
		}
		return told(r.Resume, []call.AskRequest{second})
	}
}

func answered(r *call.Resume, requests []call.AskRequest) bool {
	return !slices.ContainsFunc(requests, func(q call.AskRequest) bool {
		_, refused := r.Refused[q.Key]
		return r.Responses[q.Key] == nil && !refused
	})
}

func told(r *call.Resume, requests []call.AskRequest) call.Result {
	said := ""
	for _, q := range requests {
		if e, refused := r.Refused[q.Key]; refused {
			said += fmt.Sprintf("%s refused: %d %s; ", q.Key, e.Code, e.Message)
			continue
		}
		said += fmt.Sprintf("%s: %s; ", q.Key, r.Responses[q.Key])
	}
	return Text(said)
}
