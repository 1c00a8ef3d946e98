package mcptest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

const noInput = `{"type":"object","additionalProperties":false}`

// Tools returns one tool for each thing that a tool may do: give text,
// structure or rich content, report progress, log, fail in every way, wait for
// ever. They are what the transcripts in testdata/wire call.
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

// Text returns the response of a tool that returns a text.
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

// One block of each type, and the two that older revisions lack.
const (
	soundBlock = `{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1}}`
	linkBlock  = `{"type":"resource_link","uri":"file:///a.csv","name":"a.csv","description":"All rows."}`
	allBlocks  = `[{"type":"text","text":"audio"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},` +
		`{"type":"resource","resource":{"uri":"test://readme","text":"Hello."}},` + soundBlock + `,` + linkBlock + `]`
)

// Blocks returns tools that return a block of each type, and that have a sound described.
func Blocks() []Tool {
	sound := call.AskRequest{Key: "sound", Method: "sampling/createMessage", Params: json.RawMessage(
		`{"messages":[{"role":"user","content":` + soundBlock + `},{"role":"user","content":{"type":"text","text":"What is it?"}}],"maxTokens":100}`)}
	all := func(context.Context, call.Request) call.Result {
		return call.Result{Value: json.RawMessage("null"), Rich: true, Content: json.RawMessage(allBlocks)}
	}
	return []Tool{{ToolInfo: describe("blocks", noInput), Run: all}, {ToolInfo: describe("listen", noInput), Run: asks(sound)}}
}

// BlockItems returns a prompt that holds a sound and a link.
func BlockItems() []Item {
	prompt := func(context.Context, call.Request) call.Result {
		return call.Result{Reply: json.RawMessage(
			`{"description":"All.","messages":[{"role":"user","content":` + soundBlock + `},{"role":"assistant","content":` + linkBlock + `}]}`)}
	}
	return []Item{{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "blocks"})), Run: prompt}}
}
