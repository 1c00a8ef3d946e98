//lint:file-ignore SA1019 What is deprecated is toured as long as it is served.

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK is the official Go SDK.
type goSDK struct {
	session *mcp.ClientSession
	token   int
}

func dialGoSDK(ctx context.Context, at endpoint, in *inbox) (client, error) {
	library := mcp.NewClient(&mcp.Implementation{Name: "mcpd-ci", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			in.progress <- fmt.Sprintf("%v/%v %s", r.Params.Progress, r.Params.Total, r.Params.Message)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			in.logs <- string(r.Params.Level)
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { in.changed <- "tools" },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			in.updated <- r.Params.URI
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			a := in.ask(question{r.Params.Message, r.Params.RequestedSchema})
			return &mcp.ElicitResult{Action: a.action, Content: a.content}, nil
		},
	})
	var transport mcp.Transport
	switch at.transport {
	case "http":
		transport = &mcp.StreamableClientTransport{Endpoint: at.target[0]}
	case "sse":
		transport = &mcp.SSEClientTransport{Endpoint: at.target[0]}
	case "stdio":
		transport = &mcp.CommandTransport{Command: at.command()}
	default:
		return nil, fmt.Errorf("the Go SDK has no transport %q", at.transport)
	}
	session, err := library.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: at.revision})
	if err != nil {
		return nil, err
	}
	return &goSDK{session: session}, nil
}

func (c *goSDK) revision() string { return c.session.InitializeResult().ProtocolVersion }

func (c *goSDK) tools(ctx context.Context) (names []string, err error) {
	list, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (c *goSDK) resources(ctx context.Context) (uris []string, err error) {
	list, err := c.session.ListResources(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, resource := range list.Resources {
		uris = append(uris, resource.URI)
	}
	return uris, nil
}

func (c *goSDK) templates(ctx context.Context) (templates []string, err error) {
	list, err := c.session.ListResourceTemplates(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, template := range list.ResourceTemplates {
		templates = append(templates, template.URITemplate)
	}
	return templates, nil
}

func (c *goSDK) prompts(ctx context.Context) (names []string, err error) {
	list, err := c.session.ListPrompts(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, prompt := range list.Prompts {
		names = append(names, prompt.Name)
	}
	return names, nil
}

func (c *goSDK) call(ctx context.Context, tool string, arguments map[string]any) (*result, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	if c.revision() >= stateless {
		params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "info"}
	}
	c.token++
	params.SetProgressToken(c.token)
	got, err := c.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, block := range got.Content {
		lines = append(lines, block.(*mcp.TextContent).Text)
	}
	return &result{strings.Join(lines, "\n"), got.StructuredContent, errorCode(got.Meta["mcpd/error"])}, nil
}

func (c *goSDK) read(ctx context.Context, uri string) (string, error) {
	got, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return got.Contents[0].Text, nil
}

func (c *goSDK) prompt(ctx context.Context, name string, arguments map[string]string) (string, error) {
	got, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return got.Messages[0].Content.(*mcp.TextContent).Text, nil
}

func (c *goSDK) completePrompt(ctx context.Context, name, argument, value string) ([]string, error) {
	return c.complete(ctx, &mcp.CompleteReference{Type: "ref/prompt", Name: name}, argument, value)
}

func (c *goSDK) completeTemplate(ctx context.Context, template, variable, value string) ([]string, error) {
	return c.complete(ctx, &mcp.CompleteReference{Type: "ref/resource", URI: template}, variable, value)
}

func (c *goSDK) complete(ctx context.Context, ref *mcp.CompleteReference, name, value string) ([]string, error) {
	got, err := c.session.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}})
	if err != nil {
		return nil, err
	}
	return got.Completion.Values, nil
}

func (c *goSDK) wantLogs(ctx context.Context) error {
	if c.revision() >= stateless {
		return nil
	}
	return c.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
}

func (c *goSDK) subscribe(ctx context.Context, uri string) error {
	return c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
}

func (c *goSDK) unsubscribe(ctx context.Context, uri string) error {
	return c.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
}

func (c *goSDK) lacks(string) string { return "" }

func (c *goSDK) close() error { return c.session.Close() }
