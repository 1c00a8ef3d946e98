package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// object is a schema without arguments.
var object = json.RawMessage(`{"type":"object"}`)

// lab is a server of the official SDK with features that the reference servers
// lack: its lists have pages of two entries, and it asks and notifies in both
// eras.
func lab() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Ask the lab.", PageSize: 2,
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Value + "!"}, Total: 1}}, nil
		},
	})
	s.AddTool(&mcp.Tool{
		Name: "sum", Title: "Sum up", Description: "Adds two numbers", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"b":{"type":"number","default":2},"a":{"type":"number"}},"required":["a"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`),
	}, sum)
	s.AddTool(&mcp.Tool{Name: "exact", Description: "Returns a number that no float64 is, and members in an order", InputSchema: object}, exact)
	s.AddTool(&mcp.Tool{Name: "asks", Description: "Asks a person", InputSchema: object}, asks)
	s.AddTool(&mcp.Tool{Name: "fails", Description: "Fails", InputSchema: object}, fails)
	s.AddTool(&mcp.Tool{Name: "tells", Description: "Tells how far it is", InputSchema: object}, tells)
	s.AddPrompt(&mcp.Prompt{Name: "plan", Description: "Plans a day", Arguments: []*mcp.PromptArgument{{Name: "day", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "plan " + r.Params.Arguments["day"]}}}}, nil
		})
	s.AddResource(&mcp.Resource{URI: "lab://note", Name: "note", MIMEType: "text/plain"}, read)
	for _, name := range []string{"a", "b", "c"} {
		s.AddResource(&mcp.Resource{URI: "lab://page/" + name, Name: name, MIMEType: "text/plain"}, read)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "lab://notes/{id}", Name: "notes"}, read)
	return s
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func sum(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct{ A, B float64 }
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	result := text("it is %v", in.A+in.B)
	result.StructuredContent = map[string]float64{"sum": in.A + in.B}
	return result, nil
}

func exact(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	value := json.RawMessage(`{"z":9007199254740993,"a":{"y":1.10,"b":1e2}}`)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "exact"}}, StructuredContent: value}, nil
}

func asks(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := r.Params.InputResponses["sure"].(*mcp.ElicitResult); ok {
		return text("%s %v", answer.Action, answer.Content["name"]), nil
	}
	question := &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}`)}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": question}, RequestState: "where it stands"}, nil
}

func fails(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such order"}}}, nil
}

func tells(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for step := range 3 {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(step + 1), Total: 3, Message: fmt.Sprint("step ", step+1),
		})
		if err != nil {
			return nil, err
		}
	}
	return text("told"), nil
}

func read(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	if strings.HasSuffix(r.Params.URI, "/none") {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "holds " + r.Params.URI}}}, nil
}

// serveLab serves a lab of each era: of revision 2026-07-28 at /modern, and
// with sessions at /sessions.
func serveLab(address string) error {
	of := func(s *mcp.Server) func(*http.Request) *mcp.Server {
		return func(*http.Request) *mcp.Server { return s }
	}
	mux := http.NewServeMux()
	mux.Handle("/modern", mcp.NewStreamableHTTPHandler(of(lab()), &mcp.StreamableHTTPOptions{Stateless: true}))
	mux.Handle("/sessions", mcp.NewStreamableHTTPHandler(of(lab()), nil))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
