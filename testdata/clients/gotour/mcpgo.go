//lint:file-ignore SA1019 What is deprecated is toured as long as it is served.

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// mcpGo is the client of mark3labs/mcp-go.
type mcpGo struct {
	library *mcpclient.Client
	at      endpoint
	token   int
	in      *inbox
	stop    func() // ends listening for notifications
}

func dialMCPGo(ctx context.Context, at endpoint, in *inbox) (client, error) {
	wire, err := mcpGoTransport(at)
	if err != nil {
		return nil, err
	}
	library := mcpclient.NewClient(wire, mcpclient.WithElicitationHandler(userOf{in}), mcpclient.WithProtocolVersion(at.revision))
	library.OnNotification(in.sort)
	if err := library.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = at.revision
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcpd-ci", Version: "1.0.0"}
	if _, err := library.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	c := &mcpGo{library: library, at: at, in: in, stop: func() {}}
	if err := c.listen(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func mcpGoTransport(at endpoint) (transport.Interface, error) {
	switch at.transport {
	case "http":
		var options []transport.StreamableHTTPCOption
		if at.revision < stateless {
			options = append(options, transport.WithContinuousListening())
		}
		return transport.NewStreamableHTTP(at.target[0], options...)
	case "sse":
		return transport.NewSSE(at.target[0])
	case "stdio":
		start := func(context.Context, string, []string, []string) (*exec.Cmd, error) { return at.command(), nil }
		return transport.NewStdioWithOptions("sh", nil, nil, transport.WithCommandFunc(start), transport.WithCommandStderrWriter(io.Discard)), nil
	}
	return nil, fmt.Errorf("mcp-go has no transport %q", at.transport)
}

// userOf answers elicitations.
type userOf struct{ in *inbox }

func (u userOf) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	a := u.in.ask(question{r.Params.Message, r.Params.RequestedSchema})
	var content any
	if a.content != nil {
		content = a.content
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseAction(a.action), Content: content,
	}}, nil
}

// sort passes a notification to the matching channel.
func (in *inbox) sort(n mcp.JSONRPCNotification) {
	params := n.Params.AdditionalFields
	switch n.Method {
	case "notifications/progress":
		in.progress <- fmt.Sprintf("%v/%v %v", params["progress"], params["total"], params["message"])
	case "notifications/message":
		in.logs <- fmt.Sprint(params["level"])
	case "notifications/tools/list_changed":
		in.changed <- "tools"
	case "notifications/resources/updated":
		in.updated <- fmt.Sprint(params["uri"])
	}
}

// listen opens the notification stream of the stateless revision. A second one
// replaces the first.
func (c *mcpGo) listen(ctx context.Context, uris ...string) error {
	if c.revision() < stateless {
		return nil
	}
	c.stop()
	stop, err := c.library.ListenAsync(context.WithoutCancel(ctx), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: uris}, nil)
	if err == nil {
		c.stop = stop
	}
	return err
}

func (c *mcpGo) revision() string { return c.library.ProtocolVersion() }

func (c *mcpGo) tools(ctx context.Context) (names []string, err error) {
	list, err := c.library.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *mcpGo) resources(ctx context.Context) (uris []string, err error) {
	list, err := c.library.ListResources(ctx, mcp.ListResourcesRequest{})
	if err != nil {
		return nil, err
	}
	for _, resource := range list.Resources {
		uris = append(uris, resource.URI)
	}
	return uris, nil
}

func (c *mcpGo) templates(ctx context.Context) (templates []string, err error) {
	list, err := c.library.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
	if err != nil {
		return nil, err
	}
	for _, template := range list.ResourceTemplates {
		templates = append(templates, template.URITemplate.Raw())
	}
	return templates, nil
}

func (c *mcpGo) prompts(ctx context.Context) (names []string, err error) {
	list, err := c.library.ListPrompts(ctx, mcp.ListPromptsRequest{})
	if err != nil {
		return nil, err
	}
	for _, prompt := range list.Prompts {
		names = append(names, prompt.Name)
	}
	return names, nil
}

func (c *mcpGo) call(ctx context.Context, tool string, arguments map[string]any) (*result, error) {
	c.token++
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	request.Params.Meta = &mcp.Meta{ProgressToken: c.token}
	got, err := c.library.CallTool(ctx, request)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, block := range got.Content {
		lines = append(lines, block.(mcp.TextContent).Text)
	}
	var code string
	if got.Meta != nil {
		code = errorCode(got.Meta.AdditionalFields["mcpd/error"])
	}
	return &result{strings.Join(lines, "\n"), got.StructuredContent, code}, nil
}

func (c *mcpGo) read(ctx context.Context, uri string) (string, error) {
	request := mcp.ReadResourceRequest{}
	request.Params.URI = uri
	got, err := c.library.ReadResource(ctx, request)
	if err != nil {
		return "", err
	}
	return got.Contents[0].(mcp.TextResourceContents).Text, nil
}

func (c *mcpGo) prompt(ctx context.Context, name string, arguments map[string]string) (string, error) {
	request := mcp.GetPromptRequest{}
	request.Params.Name, request.Params.Arguments = name, arguments
	got, err := c.library.GetPrompt(ctx, request)
	if err != nil {
		return "", err
	}
	return got.Messages[0].Content.(mcp.TextContent).Text, nil
}

func (c *mcpGo) completePrompt(ctx context.Context, name, argument, value string) ([]string, error) {
	return c.complete(ctx, mcp.PromptReference{Type: "ref/prompt", Name: name}, argument, value)
}

func (c *mcpGo) completeTemplate(ctx context.Context, template, variable, value string) ([]string, error) {
	return c.complete(ctx, mcp.ResourceReference{Type: "ref/resource", URI: template}, variable, value)
}

func (c *mcpGo) complete(ctx context.Context, ref any, name, value string) ([]string, error) {
	request := mcp.CompleteRequest{}
	request.Params.Ref = ref
	request.Params.Argument = mcp.CompleteArgument{Name: name, Value: value}
	got, err := c.library.Complete(ctx, request)
	if err != nil {
		return nil, err
	}
	return got.Completion.Values, nil
}

func (c *mcpGo) wantLogs(ctx context.Context) error {
	request := mcp.SetLevelRequest{}
	request.Params.Level = mcp.LoggingLevelInfo
	return c.library.SetLevel(ctx, request)
}

func (c *mcpGo) subscribe(ctx context.Context, uri string) error {
	if c.revision() >= stateless {
		return c.listen(ctx, uri)
	}
	request := mcp.SubscribeRequest{}
	request.Params.URI = uri
	return c.library.Subscribe(ctx, request)
}

func (c *mcpGo) unsubscribe(ctx context.Context, uri string) error {
	if c.revision() >= stateless {
		return c.listen(ctx)
	}
	request := mcp.UnsubscribeRequest{}
	request.Params.URI = uri
	return c.library.Unsubscribe(ctx, request)
}

// lacks: over HTTP the library only closes the stream of a cancelled call,
// which is a cancellation only in the stateless revision. Over HTTP+SSE it
// drops requests of the server, which the stateless revision does not send.
func (c *mcpGo) lacks(step string) string {
	sse, sessions := c.at.transport == "sse", c.revision() < stateless
	switch {
	case step == "cancel" && (sse || sessions && c.at.transport == "http"):
		return "it sends no notifications/cancelled over HTTP"
	case step == "elicit" && sse && sessions:
		return "over HTTP+SSE it drops the requests of a server"
	}
	return ""
}

func (c *mcpGo) close() error {
	c.stop()
	return c.library.Close()
}
