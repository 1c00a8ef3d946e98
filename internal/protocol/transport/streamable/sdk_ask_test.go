//lint:file-ignore SA1019 sampling and roots are deprecated as of 2026-07-28, and are what older clients have

package streamable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// TestGoSDK_ask has the client of the go-sdk answer the input requests of
// tools, resources and prompts, in every revision that it supports.
func TestGoSDK_ask(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			s := newSite(t, streamable.Options{}, append(mcptest.Tools(), mcptest.InputTools()...)...)
			s.backend.PublishItems(append(mcptest.Items(), mcptest.InputItems()...)...)
			updated := make(chan string, 10)
			session := connect(t, s, version, updated)
			defer session.Close()
			askTour(t, session)
			readTour(t, session)
			subscribeTour(t, s, session, updated)
		})
	}
}

// connect connects a client that answers all input requests.
func connect(t *testing.T, s *site, version string, updated chan<- string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "Paris"}}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { trySend(updated, r.Params.URI) },
	})
	client.AddRoots(&sdk.Root{URI: "file:///home", Name: "home"})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.web.URL, HTTPClient: s.web.Client()},
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func askTour(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	for _, test := range []struct{ tool, want string }{
		{"ask", "Ada"}, {"ask_all", "file:///home"}, {"ask_all", "Paris"}, {"ask_twice", "Paris"}, {"ask_roots", "file:///home"},
	} {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: test.tool})
		if err != nil || got.IsError || !strings.Contains(got.Content[0].(*sdk.TextContent).Text, test.want) {
			t.Errorf("%s returned %+v, %v", test.tool, got, err)
		}
	}
	if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "asks"}); err != nil {
		t.Error(err)
	}
}

func readTour(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	ctx := t.Context()
	resources, err := session.ListResources(ctx, nil)
	if err != nil || len(resources.Resources) != 4 || resources.Resources[0].Icons[0].Theme != "dark" {
		t.Errorf("resources: %+v, %v", resources, err)
	}
	if templates, err := session.ListResourceTemplates(ctx, nil); err != nil || len(templates.ResourceTemplates) != 1 {
		t.Errorf("templates: %+v, %v", templates, err)
	}
	if prompts, err := session.ListPrompts(ctx, nil); err != nil || len(prompts.Prompts) != 3 {
		t.Errorf("prompts: %+v, %v", prompts, err)
	}
	if got, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: "test://logo"}); err != nil || len(got.Contents[0].Blob) == 0 {
		t.Errorf("logo: %+v, %v", got, err)
	}
	if _, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: "test://nowhere"}); err == nil {
		t.Error("an unknown resource was read")
	}
	got, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "ada"}})
	if err != nil || got.Messages[0].Content.(*sdk.TextContent).Text != "Hello, ADA." {
		t.Errorf("prompt: %+v, %v", got, err)
	}
	completed, err := session.Complete(ctx, &sdk.CompleteParams{
		Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "test://users/{id}"}, Argument: sdk.CompleteParamsArgument{Name: "id", Value: "1"},
	})
	if err != nil || len(completed.Completion.Values) != 2 {
		t.Errorf("completion: %+v, %v", completed, err)
	}
}

// subscribeTour subscribes to a resource and waits for a notification of its change.
func subscribeTour(t *testing.T, s *site, session *sdk.ClientSession, updated <-chan string) {
	t.Helper()
	if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "test://readme"}); err != nil {
		t.Fatal(err)
	}
	// A client subscribes and opens its stream at some later time.
	for {
		s.backend.ChangeResources("test://readme")
		select {
		case uri := <-updated:
			if uri != "test://readme" {
				t.Errorf("unexpected update of %s", uri)
			}
			return
		case <-t.Context().Done():
			t.Fatal("the client received no notification")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestGoSDK_resume has a tool close the connection that its client waits on.
func TestGoSDK_resume(t *testing.T) {
	tool, goOn := closingTool()
	close(goOn)
	s := newSite(t, streamable.Options{RetryDelay: time.Millisecond}, tool)
	session := connect(t, s, "2025-11-25", nil)
	defer session.Close()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "hello"})
	if err != nil || got.Content[0].(*sdk.TextContent).Text != "done" {
		t.Errorf("the tool returned %+v, %v", got, err)
	}
}
