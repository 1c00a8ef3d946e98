package examples_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// bySubscription is the last revision in which a client subscribes to one resource by a request.
const bySubscription = "2025-11-25"

func TestResources_testBlocks(t *testing.T) {
	passes(t, load(t, "resources", engine.Options{Front: serve.Checks{}}), 9)
}

func TestClient(t *testing.T) {
	session := connect(t, load(t, "resources", engine.Options{Front: serve.Checks{}}), bySubscription, nil)
	var listed []string
	for resource, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, resource.URI)
	}
	if diff := cmp.Diff([]string{"runbook://database/failover.md", "runbook://restart.md"}, listed); diff != "" {
		t.Errorf("resources (-want +got)\n%s", diff)
	}
	completed, err := session.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "incident://{id}"},
		Argument: mcp.CompleteParamsArgument{Name: "id", Value: "inc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"INC-7", "INC-12"}, completed.Completion.Values); diff != "" {
		t.Errorf("completion (-want +got)\n%s", diff)
	}
	const want = `{"id":"INC-7","title":"The light stays dark","runbook":"restart.md","open":true}`
	if got := read(t, session, "incident://INC-7"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "incident://CUST-3"}); err == nil {
		t.Error("anyone can read an incident of a customer")
	}
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "incident_review", Arguments: map[string]string{"id": "INC-7"}})
	if err != nil || len(prompt.Messages) != 3 {
		t.Errorf("the prompt is %+v, %v", prompt, err)
	}
}

func TestSubscription_editedPage(t *testing.T) {
	folder := copyOf(t, "resources")
	server := load(t, folder, engine.Options{Front: serve.Checks{}})
	told := make(chan string, 1)
	session := connect(t, server, bySubscription, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { told <- r.Params.URI },
	})
	const page = "runbook://restart.md"
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: page}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tools.d", "runbooks", "restart.md"), []byte("# Do not\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Reload(t.Context(), engine.Change{Paths: []string{"runbooks/restart.md"}}); err != nil {
		t.Fatal(err)
	}
	if uri := <-told; uri != page {
		t.Errorf("notification for %s", uri)
	}
	if got := read(t, session, page); got != "# Do not\n" {
		t.Errorf("got %q", got)
	}
}

// read returns the text of a resource.
func read(t *testing.T, session *mcp.ClientSession, uri string) string {
	t.Helper()
	result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	return result.Contents[0].Text
}
