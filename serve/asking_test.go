package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestOneScriptAsksClientsOfBothEras counts what a body does that posts, asks,
// posts, asks and posts, for clients of the official SDK: three, on the era that
// carries its state and on that which is asked on its connection.
func TestOneScriptAsksClientsOfBothEras(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var posts atomic.Int64
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "%s#%d", strings.TrimPrefix(r.URL.Path, "/"), posts.Add(1))
			}))
			defer api.Close()
			host := strings.TrimPrefix(api.URL, "http://")
			url := listen(t, frontOf(t, fmt.Sprintf(`
tool "deploy" {
  timeout = "10s"
  allow {
    http "api" {
      hosts            = [%q]
      methods          = ["POST"]
      private_networks = true
    }
    ask { elicit = true }
  }
  run = <<JS
    const post = async (step) => (await http.api.post("http://%s/" + step)).text();
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const seen = [await post("plan")];
    seen.push((await elicit({ message: "first", schema })).content.name, await post("deploy"));
    seen.push((await elicit({ message: "second", schema })).content.name, await post("finish"));
    return seen.join(" ");
  JS
}
`, host, host)))
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
				},
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy"})
			if err != nil {
				t.Fatal(err)
			}
			const want = "plan#1 first deploy#2 second finish#3"
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != want || posts.Load() != 3 {
				t.Errorf("got %+v after %d posts, want %s", result.Content[0], posts.Load(), want)
			}
		})
	}
}
