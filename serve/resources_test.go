package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/serve"
)

const kept = `
resource "motd" {
  uri  = "note://motd"
  text = "Hello"
}

resource "covered" {
  uri  = "note://covered"
  text = "Hello"
}

resource "computed" {
  uri = "note://computed"
  run = "return 'Hello';"
}

resource_template "note" {
  uri_template = "note://n/{id}"
  text         = "note {{id}}"
}

resource_folder "docs" {
  root       = "docs"
  uri_prefix = "docs://h/"
}

policy "covers" {
  resources = ["covered"]
  deny      = "agent.agent_id == 'stranger'"
  reason    = "not for strangers"
}
`

// TestResources_cacheHints reads resources as a modern client: only content
// from files without policies may be shared by intermediaries.
func TestResources_cacheHints(t *testing.T) {
	allow := func(engine.PolicyInput) engine.Decision { return engine.Allow() }
	const shared, private, anew = `60000 "public"`, `60000 "private"`, `0 "private"`
	for _, server := range []struct {
		name, config string
		policies     []engine.Policy
		want         map[string]string
	}{
		{"without more", "", nil, map[string]string{
			"note://motd": shared, "docs://h/a.md": shared, "note://covered": private, "note://computed": anew, "note://n/1": anew,
		}},
		{"with a policy in Go", "", []engine.Policy{allow}, map[string]string{"note://motd": private, "docs://h/a.md": private}},
		{"with a policy of the operator", "policy \"p\" {\n  deny   = \"agent.agent_id == 'x'\"\n  reason = \"no\"\n}\n", nil,
			map[string]string{"note://motd": private, "docs://h/a.md": private}},
	} {
		t.Run(server.name, func(t *testing.T) {
			s, err := engine.New(engine.Options{
				Name: "test", Policies: server.policies, Files: engine.Files{
					Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(server.config), Mode: 0o644}},
					Tools:  fstest.MapFS{"t.hcl": {Data: []byte(kept), Mode: 0o644}, "docs/a.md": {Data: []byte("# A"), Mode: 0o644}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			front := serve.New(s, serve.Options{})
			t.Cleanup(func() { _ = front.Shutdown(context.Background()) })
			url := listen(t, front)
			for uri, want := range server.want {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{%s,"uri":%q}}`, metaModern, uri)
				_, answer := post(t, url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": uri})
				var wire struct {
					Result struct {
						TTL   int    `json:"ttlMs"`
						Scope string `json:"cacheScope"`
					}
				}
				decode(t, answer, &wire)
				if got := fmt.Sprintf("%d %q", wire.Result.TTL, wire.Result.Scope); got != want {
					t.Errorf("%s: %s, want %s", uri, got, want)
				}
			}
		})
	}
}

// serveUpstream returns the URL of a server with another server as its upstream.
func serveUpstream(t *testing.T, behind *mcp.Server, options *mcp.StreamableHTTPOptions) (url string) {
	t.Helper()
	host := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return behind }, options))
	t.Cleanup(host.Close)
	u, err := engine.NewUpstream("notes", host.URL, "the test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{federation.New()}, Upstreams: []engine.Upstream{u}})
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, frontFor(t, s))
}

// TestSubscribe_upstreamResource runs clients and upstream servers of both
// eras, with the official SDK.
func TestSubscribe_upstreamResource(t *testing.T) {
	for era, options := range map[string]*mcp.StreamableHTTPOptions{"2026-07-28": {Stateless: true}, "2025-11-25": nil} {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			t.Run("a client of "+version+" at an upstream of "+era, func(t *testing.T) {
				left := make(chan string, 1)
				subscribed := make(chan struct{}, 1)
				notes := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, &mcp.ServerOptions{
					SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { subscribed <- struct{}{}; return nil },
					UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { left <- r.Params.URI; return nil },
				})
				notes.AddResource(&mcp.Resource{URI: "lab://note", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{}, nil
				})
				url := serveUpstream(t, notes, options)
				updated := make(chan string, 1)
				client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
						select {
						case updated <- r.Params.URI:
						default: // the end of the session waits for this function, and the test has read enough
						}
					},
				})
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "lab://note"}); err != nil {
					t.Fatal(err)
				}
				<-subscribed
				received := ""
				for received == "" { // the upstream server agrees before it notifies
					if err := notes.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "lab://note"}); err != nil {
						t.Fatal(err)
					}
					select {
					case received = <-updated:
					default:
					}
				}
				if received != "lab://note" {
					t.Errorf("the client was notified of %q", received)
				}
				if err := session.Close(); err != nil {
					t.Fatal(err)
				}
				if uri := <-left; uri != "lab://note" {
					t.Errorf("the upstream was unsubscribed from %q", uri)
				}
			})
		}
	}
}

func TestResources_upstreamTTL(t *testing.T) {
	notes := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	for uri, ms := range map[string]int{"lab://not": 0, "lab://some": 1500, "lab://long": 3_600_000} {
		notes.AddResource(&mcp.Resource{URI: uri, Name: uri[6:]}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: ms, CacheScope: "public"}, Contents: []*mcp.ResourceContents{{URI: uri, Text: "a text"}}}, nil
		})
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: serveUpstream(t, notes, &mcp.StreamableHTTPOptions{Stateless: true}) + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	for uri, want := range map[string]mcp.Cacheable{"lab://not": {CacheScope: "private"}, "lab://some": {TTLMs: 1500, CacheScope: "private"}, "lab://long": {TTLMs: 60_000, CacheScope: "private"}} {
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if read.Cacheable != want {
			t.Errorf("%s has cache hints %+v, want %+v", uri, read.Cacheable, want)
		}
	}
}
