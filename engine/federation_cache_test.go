package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
)

// countingUpstream is an upstream with a tool "count" that counts its calls.
type countingUpstream struct {
	*mcp.Server
	url string

	mu    sync.Mutex
	calls int
}

func newCountingCacheUpstream(t *testing.T) *countingUpstream {
	c := &countingUpstream{Server: mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)}
	c.url = web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.Server }, nil))
	c.describe("Counts.")
	return c
}

// describe adds the tool with a description.
func (c *countingUpstream) describe(description string) {
	c.AddTool(&mcp.Tool{Name: "count", Description: description, InputSchema: anyInput}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls++
		var said struct{ Fails bool }
		_ = json.Unmarshal(r.Params.Arguments, &said)
		return &mcp.CallToolResult{IsError: said.Fails, Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("call %d", c.calls)}}}, nil
	})
}

// upstreamCountCall returns a call of that tool.
func upstreamCountCall(p identity.Principal, arguments string) call.Request {
	r := tool("lab_count", arguments)
	r.Caller.Principal = p
	return r
}

// wantEnded makes a call and checks its outcome.
func wantEnded(t *testing.T, s *engine.Server, r call.Request, want string) {
	t.Helper()
	if got := outcomeLine(executeCall(t, s, r)); got != want {
		t.Errorf("%s by %q: got %s, want %s", r.Arguments, r.Caller.Principal.ID, got, want)
	}
}

// upstreamCount returns the result of the nth call.
func upstreamCount(n int) string { return fmt.Sprintf(`[{"type":"text","text":"call %d"}]`, n) }

const cachedCount = `override "count" {
    read_only = true
    cache {
      ttl   = %q
      scope = %q
    }
  }`

func TestUpstreamCache_scopes(t *testing.T) {
	up, clock := newCountingCacheUpstream(t), &manualClock{}
	var cached []bool
	s := server(t, engine.Options{
		Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, fmt.Sprintf(cachedCount, "30s", "principal")))}, Now: clock.now,
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			if e.Phase == call.End {
				cached = append(cached, e.Cached)
			}
		}},
	})
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	wantEnded(t, s, upstreamCountCall(local("bob"), `{}`), upstreamCount(2))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{"a":1,"b":[2]}`), upstreamCount(3))
	wantEnded(t, s, upstreamCountCall(local("ada"), ` {"b":[2], "a":1}`), upstreamCount(3))
	// Numbers keep all digits, as the upstream sees them.
	wantEnded(t, s, upstreamCountCall(local("ada"), `{"a":9007199254740993}`), upstreamCount(4))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{"a":9007199254740992}`), upstreamCount(5))
	wantEnded(t, s, upstreamCountCall(identity.Anonymous(), `{}`), upstreamCount(6))
	wantEnded(t, s, upstreamCountCall(identity.Anonymous(), `{}`), upstreamCount(7))
	clock.advance(30 * time.Second)
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(8))
	if diff := cmp.Diff([]bool{false, true, false, false, true, false, false, false, false, false}, cached); diff != "" {
		t.Errorf("cached results in hook events (-want +got)\n%s", diff)
	}

	s = server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, fmt.Sprintf(cachedCount, "30s", "server")))}, Now: clock.now})
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(9))
	wantEnded(t, s, upstreamCountCall(identity.Anonymous(), `{}`), upstreamCount(9))
}

func TestUpstreamCache_sharedByReplicas(t *testing.T) {
	up := newCountingCacheUpstream(t)
	url := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES")).URL("postgres", "")
	config := upstreamAt(up.url, fmt.Sprintf(cachedCount, "1h", "server"))
	a, b := sharing(t, url, addTool, config, engine.Options{}), sharing(t, url, addTool, config, engine.Options{})
	wantEnded(t, a, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	wantEnded(t, b, upstreamCountCall(local("bob"), `{}`), upstreamCount(1))
	wantEnded(t, b, upstreamCountCall(local("bob"), `{"a":1}`), upstreamCount(2))
	wantEnded(t, a, upstreamCountCall(local("ada"), `{"a":1.0}`), upstreamCount(3))
	wantEnded(t, a, upstreamCountCall(local("ada"), `{"a":1}`), upstreamCount(2))
	wantEnded(t, a, upstreamCountCall(local("ada"), `{"fails":true}`), "EXECUTION_ERROR: call 4")
	wantEnded(t, b, upstreamCountCall(local("ada"), `{"fails":true}`), "EXECUTION_ERROR: call 5")
	// The server has the tool under another description.
	up.describe("Counts otherwise.")
	c := sharing(t, url, addTool, config, engine.Options{})
	wantEnded(t, c, upstreamCountCall(local("ada"), `{}`), upstreamCount(6))
	d := sharing(t, url, addTool, upstreamAt(up.url, fmt.Sprintf(cachedCount, "2h", "server")), engine.Options{})
	wantEnded(t, d, upstreamCountCall(local("ada"), `{}`), upstreamCount(7))
}

func TestUpstreamCache_errorsAreNotKept(t *testing.T) {
	up := newCountingCacheUpstream(t)
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(up.url, fmt.Sprintf(cachedCount, "1h", "server")))}})
	wantEnded(t, s, upstreamCountCall(local("ada"), `{"fails":true}`), "EXECUTION_ERROR: call 1")
	wantEnded(t, s, upstreamCountCall(local("ada"), `{"fails":true}`), "EXECUTION_ERROR: call 2")
}

func TestUpstreamCache_changedDefinition(t *testing.T) {
	up, lock := newCountingCacheUpstream(t), newLock(t)
	s := pinnedServer(t, lock, upstreamAt(up.url, fmt.Sprintf(cachedCount, "1h", "server")))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	up.describe("Counts otherwise.")
	waitForSnapshot(t, s, func() bool { return len(names(s)) == 0 })
	accept(t, s, lock)
	reloadAll(t, s)
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(2))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(2))
}

func TestUpstreamCache_changedBlock(t *testing.T) {
	up, secret := newCountingCacheUpstream(t), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("one-and-only"), 0o600); err != nil {
		t.Fatal(err)
	}
	block := func(header string) string {
		return fmt.Sprintf("secret \"token\" { file = %q }\n", secret) + upstreamAt(up.url, fmt.Sprintf(cachedCount, "1h", "server"), "header \"X-Token\" { value = "+header+" }")
	}
	config := files("mcpd.hcl", block("secret.token"))
	s := server(t, engine.Options{Files: engine.Files{Config: config}})
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(1))
	reloadAll(t, s)
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(2))
	config["mcpd.hcl"].Data = []byte(block(`"other"`))
	reloadAll(t, s)
	waitForSnapshot(t, s, func() bool { return len(names(s)) == 1 })
	wantEnded(t, s, upstreamCountCall(local("ada"), `{}`), upstreamCount(3))
}
