package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/serve"
)

// newReplica returns the URL of a server that shares its state in a database.
func newReplica(t *testing.T, database, tools string, o engine.Options) string {
	t.Helper()
	o.Name, o.StateURL, o.Front = "test", database, serve.Checks{}
	if o.Extensions == nil {
		o.Extensions = []engine.Extension{postgres.New(), federation.New()}
	}
	o.Files = engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}}}
	s, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{Grace: 1})
	t.Cleanup(func() { _ = front.Shutdown(context.Background()) }) // calls may be cancelled
	return listen(t, front)
}

// newReplicas returns the URLs of three servers that share their state.
func newReplicas(t *testing.T, tools string, hooks ...engine.Hook) (urls [3]string) {
	t.Helper()
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	for i := range urls {
		urls[i] = newReplica(t, database, tools, engine.Options{Hooks: hooks})
	}
	return urls
}

// roundRobin returns the URL of a reverse proxy that sends each request to the next server.
func roundRobin(t *testing.T, urls []string) string {
	t.Helper()
	var n atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(urls[int(n.Add(1))%len(urls)])
		if err != nil {
			t.Error(err)
			return
		}
		r.SetURL(to)
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestReplicas_task uses another server for each request about a task.
func TestReplicas_task(t *testing.T) {
	t.Parallel()
	hook, started, ended := running()
	urls := newReplicas(t, endlessTask+`
tool "asks" {
  task = "required"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return "hello " + (await elicit({ message: "who?", schema })).content.name;
  JS
}
`, hook)
	at := func(i int) taskClient { return taskClient{t, urls[i]} }
	t.Run("cancel", func(t *testing.T) {
		made := at(0).call("stuck", "{}")
		<-started
		if got := at(2).until(made.ID, "working"); got.Status != "working" {
			t.Errorf("got %+v", got)
		}
		cancelled := make(chan task)
		go func() { cancelled <- at(2).until(made.ID, "cancelled") }()
		at(1).send("tasks/cancel", made.ID, fmt.Sprintf(`"taskId":%q`, made.ID))
		if message := <-ended; message != "the call was canceled" {
			t.Errorf("the leg ended with %q", message)
		}
		if got := <-cancelled; got.Result != nil || got.Error != nil {
			t.Errorf("got %+v", got)
		}
		for i := range urls {
			if got := at(i).get(made.ID); got.Status != "cancelled" {
				t.Errorf("server %d: %+v", i, got)
			}
		}
	})
	t.Run("answer", func(t *testing.T) {
		made := at(0).call("asks", "{}")
		asked := at(1).until(made.ID, "input_required")
		completed := make(chan task)
		go func() { completed <- at(0).until(made.ID, "completed") }()
		at(2).answer(asked, `{"name":"Ann"}`)
		if got := <-completed; !strings.Contains(string(got.Result), "hello Ann") {
			t.Errorf("got %s", got.Result)
		}
	})
}

// TestReplicas_ask: a client of 2026-07-28 calls through a reverse proxy, so that another server
// continues its call than the one that asked. Then all servers get the same answers at once.
func TestReplicas_ask(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s#%d", strings.TrimPrefix(r.URL.Path, "/"), posts.Add(1))
	}))
	defer api.Close()
	host := strings.TrimPrefix(api.URL, "http://")
	urls := newReplicas(t, fmt.Sprintf(`
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
    seen.push((await elicit("name", { message: "first", schema })).content.name, await post("deploy"));
    seen.push((await elicit("name", { message: "second", schema })).content.name, await post("finish"));
    return seen.join(" ");
  JS
}
`, host, host))
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: roundRobin(t, urls[:]) + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
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

	type asked struct {
		Result struct {
			ResultType, RequestState string
		}
	}
	send := func(t *testing.T, url, more string) (answer []byte, a asked) {
		answer = taskClient{t, url}.send("tools/call", "deploy", `"name":"deploy","arguments":{}`+more)
		decode(t, answer, &a)
		return answer, a
	}
	_, first := send(t, urls[0], "")
	if first.Result.ResultType != "input_required" || posts.Load() != 4 {
		t.Fatalf("%+v after %d posts", first, posts.Load())
	}
	more := fmt.Sprintf(`,"inputResponses":{"name":{"action":"accept","content":{"name":"Ann"}}},"requestState":%q`, first.Result.RequestState)
	var all sync.WaitGroup
	states := make(chan string, 4*len(urls))
	for i := range cap(states) {
		all.Go(func() {
			answer, second := send(t, urls[i%len(urls)], more)
			if second.Result.ResultType != "input_required" {
				t.Errorf("answer: %s", answer)
			}
			states <- second.Result.RequestState
		})
	}
	all.Wait()
	close(states)
	same := <-states
	for state := range states {
		if state != same {
			t.Error("the servers continued with different states")
		}
	}
	if posts.Load() != 5 {
		t.Errorf("%d posts, want 5", posts.Load())
	}
}

// TestReplicas_resourceUpdated: each server has its own process of an upstream server. The process of
// the first one reports a change.
func TestReplicas_resourceUpdated(t *testing.T) {
	t.Parallel()
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var processes [2]*mcp.Server
			var updated [2]chan string
			for i := range processes {
				subscribed := make(chan struct{}, 10)
				notes := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, &mcp.ServerOptions{
					SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { subscribed <- struct{}{}; return nil },
					UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
				})
				notes.AddResource(&mcp.Resource{URI: "lab://note", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{}, nil
				})
				host := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return notes }, nil))
				t.Cleanup(host.Close)
				u, err := engine.NewUpstream("notes", host.URL, "the test")
				if err != nil {
					t.Fatal(err)
				}
				at := newReplica(t, database, "", engine.Options{Upstreams: []engine.Upstream{u}})
				heard := make(chan string, 100)
				client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
				})
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = session.Close() })
				if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "lab://note"}); err != nil {
					t.Fatal(err)
				}
				<-subscribed
				processes[i], updated[i] = notes, heard
			}
			for received := false; !received; { // the upstream server agrees before it notifies, and the database is opened meanwhile
				if err := processes[0].ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "lab://note"}); err != nil {
					t.Fatal(err)
				}
				select {
				case uri := <-updated[1]:
					if uri != "lab://note" {
						t.Errorf("the client of the other server got %q", uri)
					}
					received = true
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}
