package upstream_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// site is a host with a server at one path that records its requests.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

// paths returns the requests since the last call, by method and path.
func (s *site) paths() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := maps.Clone(s.asked)
	clear(s.asked)
	return asked
}

// at returns a site with a lab at a path and a status for other requests.
func at(t *testing.T, path, transport string, status int) *site {
	server := forgets(t, lab(nil))
	one := func(*http.Request) *mcp.Server { return server }
	var h http.Handler = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: true})
	if transport == upstream.TransportSSE {
		h = mcp.NewSSEHandler(one, nil)
	}
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		if r.URL.Path != path {
			w.WriteHeader(status)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestProbe_hostOnly(t *testing.T) {
	for _, row := range []struct {
		path, transport, said string
		status                int
	}{
		{"/mcp", upstream.TransportStreamable, "", 404}, {"/", upstream.TransportStreamable, "", 404}, {"/", upstream.TransportSSE, "", 404}, {"/sse", upstream.TransportSSE, "", 404},
		{"/sse", upstream.TransportSSE, "", 405}, {"/", upstream.TransportStreamable, upstream.TransportStreamable, 400}, {"/sse", upstream.TransportSSE, upstream.TransportSSE, 404},
	} {
		t.Run(row.path+" "+row.transport+" "+row.said, func(t *testing.T) {
			s := at(t, row.path, row.transport, row.status)
			l, _ := dial(t, upstream.Target{Name: "x", URL: s.URL, Transport: row.said})
			if got := call(t, l, "echo", `{}`); got.Result == nil {
				t.Errorf("a call ends with %+v", got)
			}
		})
	}
}

func TestProbe_otherVariants(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		path   string
		want   []string
	}{
		"a path is taken as it is": {404, "/here", []string{"GET /here", "POST /here"}},
		"a failure is no absence":  {500, "", []string{"POST /mcp"}},
		"so is a refusal":          {403, "", []string{"POST /mcp"}},
		"it is nowhere":            {404, "", []string{"GET /", "GET /sse", "POST /", "POST /mcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := at(t, "/elsewhere", upstream.TransportStreamable, row.status)
			o, _ := options(t)
			l, err := upstream.Dial(t.Context(), upstream.Target{Name: "x", URL: s.URL + row.path}, o)
			if err == nil {
				t.Fatalf("it is reached: %v", l.Close())
			}
			if got := slices.Sorted(maps.Keys(s.paths())); !slices.Equal(got, row.want) {
				t.Errorf("it is asked for %q, want %q", got, row.want)
			}
			if row.path == "" && !strings.Contains(err.Error(), "streamable at "+s.URL+"/mcp") {
				t.Errorf("the error says nothing of where it was looked for: %v", err)
			}
		})
	}
}

func TestProbe_knownVariantFirst(t *testing.T) {
	t.Parallel()
	s := at(t, "/sse", upstream.TransportSSE, 404)
	pool, listed := newPool(t)
	pool.SetTargets([]upstream.Target{{Name: "x", URL: s.URL}})
	until(t, listed, func() bool { return pool.State("x").Listing != nil })
	if asked := s.paths(); asked["POST /mcp"] == 0 {
		t.Errorf("first request: %v", asked)
	}
	before := pool.State("x").Since
	s.CloseClientConnections()
	until(t, listed, func() bool { return pool.State("x").Listing != nil && pool.State("x").Since != before })
	if asked := s.paths(); asked["GET /sse"] != 1 || asked["POST /mcp"]+asked["POST /"]+asked["GET /"] > 0 {
		t.Errorf("next request: %v", asked)
	}
}

// BenchmarkCall calls a tool over each transport. HTTP servers run in this process, so their
// allocations are included.
func BenchmarkCall(b *testing.B) {
	for way, target := range targetsByTransport(b) {
		b.Run(way, func(b *testing.B) {
			l, _ := dial(b, target)
			request := upstream.Request{Method: upstream.MethodTool, Name: "echo", Arguments: json.RawMessage(`{"a":1}`)}
			b.ReportAllocs()
			for b.Loop() {
				reply, err := l.Start(b.Context(), request, nil).Next(b.Context())
				if err != nil || reply.Result == nil {
					b.Fatalf("%+v, %v", reply, err)
				}
			}
		})
	}
}
