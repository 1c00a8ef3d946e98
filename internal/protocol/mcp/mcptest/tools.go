package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

const noInput = `{"type":"object","additionalProperties":false}`

// Tools returns one tool per behavior: return text, structured or rich content,
// report progress, log, fail in every way, never end. The transcripts in
// testdata/wire call them.
func Tools() []Tool {
	return []Tool{
		{ToolInfo: describe("hello", noInput), Run: hello},
		{ToolInfo: addInfo(), Run: add},
		{ToolInfo: describe("whoami", noInput), Run: whoami},
		{ToolInfo: describe("picture", noInput), Run: picture},
		{ToolInfo: describe("steps", noInput), Run: steps},
		{ToolInfo: describe("wait", noInput), Run: wait},
		{ToolInfo: describe("fail", `{"type":"object","properties":{"how":{"type":"string"}}}`), Run: fail},
		{ToolInfo: describe("region", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},`+
			`"where":{"type":"object","properties":{"level":{"type":"integer","x-mcp-header":"Level"}}}}}`), Run: hello},
		{ToolInfo: describe("secret", noInput), Run: hello, Visible: insider},
	}
}

func describe(name, input string) mcp.ToolInfo {
	return mcp.ToolInfo{
		Name: name, Description: "The tool " + name + ".", HasDescription: true,
		InputSchema: json.RawMessage(input), Idempotent: true, TimeoutMS: 1000,
	}
}

func addInfo() mcp.ToolInfo {
	info := describe("add", `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)
	info.Title = "Addition"
	yes, no := true, false
	info.ReadOnly, info.OpenWorld = &yes, &no
	info.OutputSchema = json.RawMessage(`{"type":"number"}`)
	return info
}

// Text returns the result of a tool that returns a text.
func Text(s string) call.Result {
	value, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return call.Result{
		Value:   value,
		Content: json.RawMessage(`[{"type":"text","text":` + string(value) + `}]`),
	}
}

func hello(context.Context, call.Request) call.Result { return Text("Hello.") }

func add(_ context.Context, r call.Request) call.Result {
	var in struct{ A, B *float64 }
	if json.Unmarshal(r.Arguments, &in) != nil || in.A == nil || in.B == nil {
		return call.Result{Err: &call.Error{
			Code: call.InvalidInput, Message: "the arguments do not fit the schema",
			Violations: []call.Violation{{Path: "/a", Message: "must be a number"}, {Message: "b is missing"}},
			Schema:     addInfo().InputSchema,
		}}
	}
	sum, err := json.Marshal(*in.A + *in.B)
	if err != nil {
		panic(err)
	}
	response := Text(string(sum))
	response.Value, response.Structured = sum, sum
	return response
}

func whoami(_ context.Context, r call.Request) call.Result {
	a := r.Caller.Agent
	text, err := json.Marshal(map[string]any{
		"principal": r.Caller.Principal.ID, "agent_id": a.AgentID, "model": a.Model,
		"request_id": a.RequestID, "metadata": a.Metadata,
	})
	if err != nil {
		panic(err)
	}
	return Text(string(text))
}

func picture(context.Context, call.Request) call.Result {
	return call.Result{
		Value: json.RawMessage("null"), Rich: true,
		Content:    json.RawMessage(`[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]`),
		Structured: json.RawMessage("{\n  \"width\": 1\n}"),
	}
}

// steps reports three steps and logs twice.
func steps(_ context.Context, r call.Request) call.Result {
	if r.Emit != nil {
		total := 100.0
		r.Emit.Log("info", "begun", json.RawMessage(`{"steps":3}`))
		for _, done := range []float64{0, 50, 50, 100} {
			r.Emit.Progress(done, &total, "working")
		}
		r.Emit.Log("debug", "done", nil)
	}
	return Text("Done.")
}

// wait waits until the call is cancelled.
func wait(ctx context.Context, _ call.Request) call.Result {
	<-ctx.Done()
	return call.Result{Err: &call.Error{Code: call.Timeout, Message: "cancelled"}}
}

func fail(_ context.Context, r call.Request) call.Result {
	var in struct{ How string }
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		in.How = "throw"
	}
	e := &call.Error{Code: call.ExecutionError, Message: "it broke"}
	switch in.How {
	case "tool":
		e.Details = json.RawMessage("{\n\"hint\": 1}")
	case "deny":
		e = &call.Error{Code: call.PolicyDenied, Message: "Blocked in prod"}
	case "limit":
		e = &call.Error{Code: call.PolicyDenied, Message: "too often", Limited: true, RetryAfter: 1500 * time.Millisecond}
	case "timeout":
		e = &call.Error{Code: call.Timeout, Message: "the tool took longer than 1s"}
	case "capability":
		e.RPC = &call.RPCError{Code: -32021, Message: "sampling is needed", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	case "rpc":
		e.RPC = &call.RPCError{Code: 7, Message: "my own"}
	case "panic":
		panic("a defect in the backend")
	}
	return call.Result{Err: e}
}

// Items returns the items that the transcripts use: text, binary, hidden and
// broken resources, a template, and prompts with and without arguments.
func Items() []Item {
	return []Item{
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources,
			Address: "test://readme", Name: "readme", Title: "Read me", Description: "What to know first.", MIMEType: "text/plain", Size: 6,
			Icons:       []mcp.Icon{{Source: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: "dark"}},
			Annotations: json.RawMessage("{\n\"priority\": 1}"),
		})), Run: contents(`"mimeType":"text/plain","text":"Hello."`)},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://logo", Name: "logo", MIMEType: "image/png", Size: -1})),
			Run: contents(`"mimeType":"image/png","blob":"iVBORw0KGgo="`)},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://broken", Name: "broken", Size: -1})), Run: fail},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://secret", Name: "secret", Size: -1})),
			Run: contents(`"text":"hidden"`), Visible: insider},
		{Kind: call.Templates, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Templates,
			Address: "test://users/{id}", Name: "user", Title: "A user", Description: "One user.", MIMEType: "application/json",
		})), Run: user},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "plain", Description: "Says hello."})), Run: plain},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts,
			Address: "greet", Title: "Greeting", Description: "Greets somebody.",
			Arguments: []mcp.Argument{{Name: "who", Title: "Who", Description: "Whom to greet.", Required: true}, {Name: "how"}},
			Icons:     []mcp.Icon{{Source: "data:image/png;base64,iVBORw0KGgo="}},
		})), Run: greet},
	}
}

// insider reports whether the caller may see hidden entries.
func insider(c identity.Caller) bool { return c.Agent.AgentID == "insider" }

func must(e *mcp.Entry, err error) *mcp.Entry {
	if err != nil {
		panic(err)
	}
	return e
}

// contents returns a resource with one content, which has the members.
func contents(members string) Run {
	return func(_ context.Context, r call.Request) call.Result {
		uri, err := json.Marshal(r.Name)
		if err != nil {
			panic(err)
		}
		return call.Result{
			Reply: json.RawMessage(`{"contents":[{"uri":` + string(uri) + `,` + members + `}]}`),
			TTL:   time.Minute, Public: r.Name != "test://secret",
		}
	}
}

// user is a template: it suggests ids, and reads users by id.
func user(_ context.Context, r call.Request) call.Result {
	if r.Argument == "" {
		return call.Result{Reply: json.RawMessage(`{"contents":[{"uri":"` + r.Name + `","text":"user"}]}`)}
	}
	return call.Result{Reply: json.RawMessage(`{"completion":{"values":["1","12"],"total":2,"hasMore":false}}`)}
}

func plain(context.Context, call.Request) call.Result { return messages("Hello.") }

// greet completes with the argument itself, and fails without a name.
func greet(_ context.Context, r call.Request) call.Result {
	if r.Argument != "" {
		values, err := json.Marshal([]string{r.Argument + ":" + string(r.Arguments)})
		if err != nil {
			panic(err)
		}
		return call.Result{Reply: json.RawMessage(`{"completion":{"values":` + string(values) + `}}`)}
	}
	var in struct{ Who string }
	if json.Unmarshal(r.Arguments, &in) != nil || in.Who == "" {
		return call.Result{Err: &call.Error{
			Code: call.InvalidInput, Message: "the arguments do not fit the prompt",
			Violations: []call.Violation{{Message: "who is missing"}},
		}}
	}
	return messages("Hello, " + strings.ToUpper(in.Who) + ".")
}

func messages(text string) call.Result {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return call.Result{Reply: json.RawMessage(
		`{"messages":[{"role":"user","content":{"type":"text","text":` + string(quoted) + `}}]}`)}
}

// The requests of the tools and items that need input.
const (
	nameForm = `{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`
	capital  = `{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}`
	door     = `{"mode":"url","message":"Sign in","url":"https://example.com/in","elicitationId":"e-1"}`
)

// InputTools returns tools that need client input: a name; a name, a text and
// the roots at once; a name and then a text; a visit to a URL; and something
// that no client supports. The state of each is "state of " and its name.
func InputTools() []Tool {
	form := call.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	sample := call.AskRequest{Key: "capital", Method: "sampling/createMessage", Params: json.RawMessage(capital)}
	roots := call.AskRequest{Key: "roots", Method: "roots/list", Params: json.RawMessage("{}")}
	elsewhere := call.AskRequest{Key: "door", Method: "elicitation/create", Params: json.RawMessage(door)}
	return []Tool{
		{ToolInfo: describe("ask", noInput), Run: Asks(form)},
		{ToolInfo: describe("ask_all", noInput), Run: Asks(form, sample, roots)},
		{ToolInfo: describe("ask_twice", noInput), Run: askTwice(form, sample)},
		{ToolInfo: describe("ask_elsewhere", noInput), Run: Asks(elsewhere)},
		{ToolInfo: describe("ask_roots", noInput), Run: Asks(roots)},
		{ToolInfo: describe("ask_badly", noInput), Run: Asks(call.AskRequest{Key: "x", Method: "ping"})},
	}
}

// InputItems returns a resource and a prompt that need a name.
func InputItems() []Item {
	form := call.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	wrap := func(before, after string) Run {
		return func(ctx context.Context, r call.Request) call.Result {
			response := Asks(form)(ctx, r)
			response.Reply = json.RawMessage(before + string(response.Value) + after)
			return response
		}
	}
	return []Item{
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://asks", Name: "asks", Size: -1})),
			Run: wrap(`{"contents":[{"uri":"test://asks","text":`, `}]}`)},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "asks"})),
			Run: wrap(`{"messages":[{"role":"user","content":{"type":"text","text":`, `}}]}`)},
	}
}

// Asks returns a tool that asks until it has all responses, and returns them.
func Asks(requests ...call.AskRequest) Run {
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
		return responsesText(r.Resume, requests)
	}
}

// askTwice makes the second request after the response to the first.
func askTwice(first, second call.AskRequest) Run {
	return func(_ context.Context, r call.Request) call.Result {
		switch {
		case r.Resume == nil:
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{first}, State: "1"}}
		case r.Resume.State == "1":
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{second}, State: "2"}}
		}
		return responsesText(r.Resume, []call.AskRequest{second})
	}
}

func answered(r *call.Resume, requests []call.AskRequest) bool {
	return !slices.ContainsFunc(requests, func(q call.AskRequest) bool {
		_, refused := r.Refused[q.Key]
		return r.Responses[q.Key] == nil && !refused
	})
}

func responsesText(r *call.Resume, requests []call.AskRequest) call.Result {
	text := ""
	for _, q := range requests {
		if e, refused := r.Refused[q.Key]; refused {
			text += fmt.Sprintf("%s refused: %d %s; ", q.Key, e.Code, e.Message)
			continue
		}
		text += fmt.Sprintf("%s: %s; ", q.Key, r.Responses[q.Key])
	}
	return Text(text)
}
