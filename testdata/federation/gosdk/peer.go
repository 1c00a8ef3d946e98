//lint:file-ignore SA1019 What is deprecated is toured as long as it is served.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is a client of the SDK that is connected to a server.
type peer struct {
	session *mcp.ClientSession
	tokens  int
	told    chan struct{} // receives a value for each progress notification

	mu   sync.Mutex
	came came
	// answers are the user's next answers.
	answers []*mcp.ElicitResult
}

// came is the outcome of a request. Err is set if there is no result.
type came struct {
	Asked, Sampled, Progress []string
	Result                   map[string]any
	Code                     string
	Err                      error
}

func dial(ctx context.Context, transport mcp.Transport, revision string, roots bool) (*peer, error) {
	p := &peer{told: make(chan struct{}, 1024)}
	capabilities := &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}, Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
	if roots {
		capabilities.RootsV2 = &mcp.RootCapabilities{}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpd-ci", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities:       capabilities,
		ElicitationHandler: p.elicit,
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			p.note(func(c *came) {
				c.Sampled = append(c.Sampled, fmt.Sprint(r.Params.MaxTokens, " ", r.Params.SystemPrompt))
			})
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", StopReason: "endTurn", Content: &mcp.TextContent{Text: "a thought"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.note(func(c *came) {
				c.Progress = append(c.Progress, strings.TrimSpace(fmt.Sprintf("%v/%v %s", r.Params.Progress, r.Params.Total, r.Params.Message)))
			})
			p.told <- struct{}{}
		},
	})
	if roots {
		client.AddRoots(&mcp.Root{URI: "file:///home/ada", Name: "home"})
	}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, err
	}
	p.session = session
	if got := session.InitializeResult().ProtocolVersion; revision != "" && got != revision {
		return nil, fmt.Errorf("the server speaks %s", got)
	}
	return p, nil
}

func (p *peer) note(what func(*came)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what(&p.came)
}

func (p *peer) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came.Asked = append(p.came.Asked, r.Params.Message)
	if len(p.answers) == 0 {
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer, nil
}

// request is a request of the file.
type request struct {
	Server, Tool, As, Prompt, Read string
	Complete                       struct{ Prompt, Template string }
	Argument, Value                string
	Context                        map[string]string
	Arguments                      map[string]any
	Answers                        []*mcp.ElicitResult
	Progress                       []string
	Denied, Invalid, Varies        string
	Asks                           string
	Samples                        int
}

// make makes a request. named returns the server's name of a tool or a prompt.
func (p *peer) make(ctx context.Context, r request, named func(string) string) came {
	p.mu.Lock()
	p.came, p.answers = came{}, r.Answers
	p.mu.Unlock()
	result, err := p.send(ctx, r, named)
	for range r.Progress { // the SDK returns from a call before all progress has arrived
		select {
		case <-p.told:
		case <-ctx.Done():
			return came{Err: ctx.Err()}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.came
	if got.Err = err; err != nil {
		return got
	}
	encoded, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(encoded, &got.Result)
	}
	got.Err = err
	if meta, ok := got.Result["_meta"].(map[string]any); ok {
		failure, _ := meta["mcpd/error"].(map[string]any)
		got.Code, _ = failure["code"].(string)
	}
	for _, own := range []string{"_meta", "resultType", "ttlMs", "cacheScope"} {
		delete(got.Result, own)
	}
	return got
}

func (p *peer) send(ctx context.Context, r request, named func(string) string) (any, error) {
	switch {
	case r.Tool != "":
		params := &mcp.CallToolParams{Name: named(r.Tool), Arguments: r.Arguments}
		if r.Arguments == nil {
			params.Arguments = map[string]any{}
		}
		if r.Progress != nil {
			p.tokens++
			params.SetProgressToken(p.tokens)
		}
		return p.session.CallTool(ctx, params)
	case r.Prompt != "":
		arguments := map[string]string{}
		for name, value := range r.Arguments {
			arguments[name] = fmt.Sprint(value)
		}
		return p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: named(r.Prompt), Arguments: arguments})
	case r.Read != "":
		return p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Read})
	}
	ref := &mcp.CompleteReference{Type: "ref/resource", URI: r.Complete.Template}
	if r.Complete.Prompt != "" {
		ref = &mcp.CompleteReference{Type: "ref/prompt", Name: named(r.Complete.Prompt)}
	}
	params := &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: r.Argument, Value: r.Value}}
	if r.Context != nil {
		params.Context = &mcp.CompleteContext{Arguments: r.Context}
	}
	return p.session.Complete(ctx, params)
}
