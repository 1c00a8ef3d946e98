package engine_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// newAskingUpstream returns a server of 2026-07-28 that ends its calls with input requests, and records the
// responses. It ignores the client's capabilities.
func newAskingUpstream(t *testing.T) (url string, told *[]string) {
	up, told := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil), &[]string{}
	ask := func(name string, question mcp.InputRequest) {
		up.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			can, _ := json.Marshal(r.Params.Meta["io.modelcontextprotocol/clientCapabilities"])
			*told = append(*told, string(can))
			if answer, given := r.Params.InputResponses["q"]; given {
				text, err := json.Marshal(answer)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Params.RequestState + " " + string(text)}}}, err
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "here"}, nil
		})
	}
	ask("asks", &mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
	//lint:ignore SA1019 servers of all revisions ask so
	ask("samples", &mcp.CreateMessageParams{MaxTokens: 1000, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Think"}}}})
	//lint:ignore SA1019 as above
	ask("looks", &mcp.ListRootsParams{})
	return web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, &mcp.StreamableHTTPOptions{Stateless: true})), told
}

func TestUpstream_modernAskNotAllowed(t *testing.T) {
	url, told := newAskingUpstream(t)
	for name, c := range map[string]struct {
		block string
		can   call.Capabilities
	}{
		"the block allows nothing":   {upstreamAt(url), askableCall("").Can},
		"the client cannot be asked": {upstreamAt(url, `ask = ["elicit", "sample", "roots"]`), call.Capabilities{}},
	} {
		s := federated(t, c.block)
		for _, tool := range []string{"lab_asks", "lab_samples", "lab_looks"} {
			*told = nil
			got := executeCall(t, s, call.Request{Name: tool, Can: c.can})
			if got.Ask != nil || !strings.HasPrefix(outcomeLine(got), "EXECUTION_ERROR: ") {
				t.Errorf("%s: %s ends with %s", name, tool, outcomeLine(got))
			}
			if diff := cmp.Diff([]string{"{}"}, *told); diff != "" {
				t.Errorf("%s: capabilities sent to the server (-want +got)\n%s", name, diff)
			}
		}
	}
	s := federated(t, upstreamAt(url, `ask = ["elicit"]`))
	if got := executeCall(t, s, askableCall("lab_samples")); got.Ask != nil || got.Err == nil {
		t.Errorf("a block allows elicitation only, but sampling passes: %s", outcomeLine(got))
	}
}

func TestUpstream_modernAsk(t *testing.T) {
	url, told := newAskingUpstream(t)
	s := federated(t, upstreamAt(url, `ask = ["elicit", "sample", "roots"]`, `max_tokens = 100`))
	for name, c := range map[string]struct{ can, question, answer, want string }{
		"lab_asks": {`"elicitation"`, `elicitation/create {"_meta":{"mcpd/upstream":"lab"},"message":"[lab] Sure?"`,
			`{"action":"accept","content":{}}`, `{"action":"accept"`},
		"lab_samples": {`"sampling"`, `sampling/createMessage {"_meta":{"mcpd/upstream":"lab"},"maxTokens":100,"messages":[{"content":{"text":"Think","type":"text"},"role":"user"}],"systemPrompt":"[lab] "}`,
			`{"role":"assistant","model":"m","content":{"type":"text","text":"thought"}}`, `"text":"thought"`},
		"lab_looks": {`"roots"`, `roots/list {`, `{"roots":[{"uri":"file:///home"}]}`, `file:///home`},
	} {
		*told = nil
		first := executeCall(t, s, askableCall(name))
		if first.Ask == nil || len(first.Ask.Requests) != 1 {
			t.Fatalf("%s: no input request: %s", name, outcomeLine(first))
		}
		q := first.Ask.Requests[0]
		if got := q.Method + " " + string(q.Params); !strings.HasPrefix(got, c.question) {
			t.Errorf("%s requests %s\nwant %s", name, got, c.question)
		}
		again := askableCall(name)
		again.Resume = &call.Resume{State: first.Ask.State, Responses: map[string]json.RawMessage{q.Key: json.RawMessage(c.answer)}}
		var blocks []struct{ Text string }
		got := executeCall(t, s, again)
		if err := json.Unmarshal(got.Content, &blocks); err != nil || len(blocks) != 1 || !strings.HasPrefix(blocks[0].Text, "here ") || !strings.Contains(blocks[0].Text, c.want) {
			t.Errorf("%s ends with %s\nwant %s", name, outcomeLine(got), c.want)
		}
		if len(*told) != 2 || !strings.Contains((*told)[0], c.can) {
			t.Errorf("%s: the server got %q", name, *told)
		}
	}
}
