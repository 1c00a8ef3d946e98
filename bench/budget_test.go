package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

func TestGoTool_allocations(t *testing.T) {
	s := native(t)
	request := call.Request{Name: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`), Caller: addRequest.Caller}
	inProcess := testing.AllocsPerRun(200, func() {
		if r := s.Execute(t.Context(), request); r.Err != nil {
			t.Fatal(r.Err)
		}
	})
	overHTTP := allocsOf(t, handlerOf(t, native(t)))
	bare := allocsOf(t, http.HandlerFunc(bareHTTP))
	t.Logf("%.0f in process, %.0f over HTTP, %.0f with a bare handler", inProcess, overHTTP, bare)
	if inProcess > 22 {
		t.Errorf("a call in process makes %.0f allocations", inProcess)
	}
	if overHTTP > bare/2 {
		t.Errorf("a call over HTTP makes %.0f allocations, a bare handler %.0f", overHTTP, bare)
	}
}

// allocsOf returns the number of allocations of a call to a handler.
func allocsOf(t *testing.T, h http.Handler) float64 {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:8080/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"add"},
	}
	r.RemoteAddr, r.ContentLength = "127.0.0.1:4444", int64(len(body))
	message := bytes.NewReader([]byte(body))
	content, w := io.NopCloser(message), &discard{header: http.Header{}}
	return testing.AllocsPerRun(200, func() {
		_, _ = message.Seek(0, io.SeekStart)
		r.Body = content
		clear(w.header)
		if h.ServeHTTP(w, r); w.status != 0 && w.status != http.StatusOK {
			t.Fatal(w.status)
		}
	})
}

// discard is a response writer that discards everything and supports deadlines.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header            { return d.header }
func (d *discard) Write(p []byte) (int, error)    { return len(p), nil }
func (d *discard) WriteHeader(status int)         { d.status = status }
func (*discard) SetReadDeadline(time.Time) error  { return nil }
func (*discard) SetWriteDeadline(time.Time) error { return nil }

// TestReload_allocations bounds the work of a reload for files that have not changed.
func TestReload_allocations(t *testing.T) {
	const files = 1000
	folder := onDisk(t, manyTools(files))
	s := load(t, engine.Options{Files: engine.Files{Tools: engine.Dir(folder)}})
	version := 0
	allocs := testing.AllocsPerRun(10, func() {
		version++
		if err := os.WriteFile(filepath.Join(folder, "t0500.hcl"), []byte(oneTool(500, fmt.Sprint("v", version))), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"t0500.hcl"}}); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%.0f allocations", allocs)
	if !cputest.Race() && allocs > 3*files {
		t.Errorf("a reload of one of %d files makes %.0f allocations", files, allocs)
	}
}
