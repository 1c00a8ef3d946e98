package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

const twoArguments = `
tool "add" {
  description = "Adds two numbers."
  input "a" { type = integer }
  input "b" { type = integer }
  output "sum" { type = integer }
  run = <<JS
    return { sum: input.a + input.b };
  JS
}
policy "small" {
  tools  = ["add"]
  deny   = "args.a > 1000 && !principal.scopes.exists(s, s == 'admin')"
  reason = "too large"
}
`

// manyTools returns n tool files with one realistic small tool each.
func manyTools(n int) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("t%04d.hcl", i)] = oneTool(i, "ok")
	}
	return files
}

func oneTool(i int, answer string) string {
	return fmt.Sprintf(`tool "tool_%04d" {
  description = "Does the thing number %d."
  read_only   = true
  input "id" {
    type        = string
    description = "Which one"
    pattern     = "^[A-Z]-[0-9]+$"
  }
  input "limit" {
    type    = integer
    default = 10
    min     = 1
    max     = 100
  }
  output "id" { type = string }
  output "state" { type = string }
  run = <<JS
    return { id: input.id, state: %q };
  JS
}
`, i, i, answer)
}

func load(tb testing.TB, o engine.Options) *engine.Server {
	tb.Helper()
	o.Name = "bench"
	s, err := engine.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Load(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func addServer(tb testing.TB) *engine.Server {
	return load(tb, engine.Options{Files: engine.Files{Tools: fstest.MapFS{"add.hcl": {Data: []byte(twoArguments), Mode: 0o644}}}})
}

var addRequest = call.Request{
	Name: "add", Arguments: json.RawMessage(`{"a":2,"b":3}`),
	Caller: identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: "bench", RequestID: "r-1"}},
}

// BenchmarkCall measures a call in process: two arguments, one policy, no await.
func BenchmarkCall(b *testing.B) {
	s := addServer(b)
	b.ReportAllocs()
	for b.Loop() {
		if r := s.Execute(b.Context(), addRequest); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}

func TestCall_allocations(t *testing.T) {
	s := addServer(t)
	const budget = 95
	got := testing.AllocsPerRun(200, func() {
		if r := s.Execute(t.Context(), addRequest); r.Err != nil {
			t.Fatal(r.Err)
		}
	})
	if got > budget {
		t.Errorf("a call makes %.0f allocations, want at most %d", got, budget)
	}
}

// BenchmarkColdLoad reads, parses, compiles and links a thousand tool files.
func BenchmarkColdLoad(b *testing.B) {
	folder := onDisk(b, manyTools(1000))
	b.ReportAllocs()
	for b.Loop() {
		s, err := engine.New(engine.Options{Name: "bench", Files: engine.Files{Tools: engine.Dir(folder)}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = s.Close(context.Background())
	}
}

// BenchmarkGoTools registers and loads ten thousand tools in Go of the same types.
func BenchmarkGoTools(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := engine.New(engine.Options{Name: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 10_000 {
			if err := engine.AddTool(s, engine.ToolOptions{Name: fmt.Sprint("add", i), Description: "Adds two numbers."}, addNumbers); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = s.Close(context.Background())
	}
}

// BenchmarkReload reloads after one of a thousand files changed.
func BenchmarkReload(b *testing.B) {
	folder := onDisk(b, manyTools(1000))
	s := load(b, engine.Options{Files: engine.Files{Tools: engine.Dir(folder)}})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := filepath.Join(folder, "t0500.hcl")
		if err := os.WriteFile(name, []byte(oneTool(500, fmt.Sprint("v", i))), 0o644); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Reload(b.Context(), engine.Change{Paths: []string{"t0500.hcl"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func onDisk(tb testing.TB, files map[string]string) string {
	tb.Helper()
	folder := tb.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return folder
}

// BenchmarkList measures tools/list of a thousand tools over HTTP, without the network.
func BenchmarkList(b *testing.B) {
	s := load(b, engine.Options{Files: engine.Files{Tools: engine.Dir(onDisk(b, manyTools(1000)))}})
	post := poster(b, s)
	body := modern("tools/list", "")
	b.ReportAllocs()
	for b.Loop() {
		if size := post("tools/list", "", body); size < 100_000 {
			b.Fatalf("the list has %d bytes", size)
		}
	}
}

// BenchmarkHTTPCall measures tools/call over HTTP, without the network.
func BenchmarkHTTPCall(b *testing.B) {
	post := poster(b, addServer(b))
	body := modern("tools/call", `"name":"add","arguments":{"a":2,"b":3},`)
	b.ReportAllocs()
	for b.Loop() {
		post("tools/call", "add", body)
	}
}

func modern(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// poster returns a function that posts to /mcp and returns the size of the response.
func poster(tb testing.TB, s *engine.Server) func(method, name, body string) int {
	tb.Helper()
	front := serve.New(s, serve.Options{})
	handler, err := front.Handler()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = front.Shutdown(context.Background()) })
	return func(method, name, body string) int {
		request := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/mcp", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		request.Header.Set("Mcp-Method", method)
		if name != "" {
			request.Header.Set("Mcp-Name", name)
		}
		response := sink{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(&response, request)
		if response.status != http.StatusOK {
			tb.Fatalf("the status is %d", response.status)
		}
		return response.size
	}
}

// sink counts the bytes of a response and discards them. A recorder would grow its
// buffer with each write, which a connection does not.
type sink struct {
	header       http.Header
	status, size int
}

func (s *sink) Header() http.Header    { return s.header }
func (s *sink) WriteHeader(status int) { s.status = status }
func (s *sink) Flush()                 {}
func (s *sink) Write(p []byte) (int, error) {
	s.size += len(p)
	return len(p), nil
}
