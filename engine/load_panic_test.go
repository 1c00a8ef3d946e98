package engine_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// panickingFS panics when panics is set and a file is opened.
type panickingFS struct {
	fstest.MapFS
	panics *bool
}

func (f panickingFS) Open(name string) (fs.File, error) {
	if *f.panics && strings.HasSuffix(name, ".hcl") {
		panic("the content of a file")
	}
	return f.MapFS.Open(name)
}

func (f panickingFS) ReadFile(name string) ([]byte, error) {
	if *f.panics {
		panic("the content of a file")
	}
	return f.MapFS.ReadFile(name)
}

func TestReload_panicKeepsSnapshot(t *testing.T) {
	var panics bool
	var log bytes.Buffer
	folder := panickingFS{files("add.hcl", addTool), &panics}
	s := server(t, engine.Options{Files: engine.Files{Tools: folder}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	before := s.Snapshot()
	folder.MapFS["more.hcl"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(addTool, `"add"`, `"plus"`)), Mode: 0o644}
	panics = true
	report, err := s.Reload(t.Context(), engine.Change{Paths: []string{"more.hcl"}})
	if err == nil || len(report.Problems) != 1 || report.Problems[0].Code != "file-internal" || strings.Contains(err.Error(), "content") {
		t.Fatalf("reload: %v", err)
	}
	if s.Snapshot() != before || report.Revision != before.Revision() {
		t.Error("the snapshot changed")
	}
	if status := s.Status(); status.Synchronized || status.FailedLoads != 1 || len(status.Problems) != 1 {
		t.Errorf("status %+v", status)
	}
	if !strings.Contains(log.String(), "panickingFS") || strings.Contains(log.String(), "content of a file") {
		t.Errorf("the log has no stack, or the value of the panic:\n%s", &log)
	}
	if result, err := s.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}); err != nil || string(result.Value) != `{"sum":3}` {
		t.Errorf("call after the panic: %s, %v", result.Value, err)
	}
	panics = false
	if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"other.hcl"}}); err != nil {
		t.Fatal(err)
	}
	if s.Snapshot().Tool("plus") == nil || !s.Status().Synchronized {
		t.Error("the next reload does not read all files")
	}
}

func TestLoad_panicIsAnError(t *testing.T) {
	panics := true
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: panickingFS{files("add.hcl", addTool), &panics}}})
	if _, err := s.Load(t.Context()); err == nil || s.Snapshot() != nil {
		t.Fatalf("load: %v", err)
	}
	panics = false
	if _, err := s.Load(t.Context()); err != nil || s.Snapshot().Tool("add") == nil {
		t.Errorf("load after the panic: %v", err)
	}
}

// panickingFederation is an extension without upstream servers that panics when it is asked
// for their offers.
type panickingFederation struct {
	federation.Federation
	panics  *atomic.Bool
	relist  *func() time.Duration
	commits *atomic.Int64
}

func (panickingFederation) Name() string { return "test" }

func (f panickingFederation) Federate(o federation.Options) federation.Federation {
	*f.relist = o.Relist
	return f
}

func (f panickingFederation) Offers(blocks []definition.Upstream, keys map[string]string) catalog.Offers {
	offers := f.Federation.Offers(blocks, keys)
	if f.panics.Load() {
		panic("an offer")
	}
	return offers
}

// Commit counts. A commit writes tools that are pinned on first use to the lock file.
func (f panickingFederation) Commit(c *catalog.Catalog) {
	f.commits.Add(1)
	f.Federation.Commit(c)
}

func TestRelist_panicKeepsSnapshot(t *testing.T) {
	var panics atomic.Bool
	var relist func() time.Duration
	var commits atomic.Int64
	s, err := engine.New(engine.Options{
		Name: "test", Scripts: engine.Scripts{Programs: scripting.Inline()}, Files: engine.Files{Tools: files("add.hcl", addTool)},
		Extensions: []engine.Extension{panickingFederation{federation.None(), &panics, &relist, &commits}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, committed := s.Snapshot(), commits.Load()
	panics.Store(true)
	relist()
	status := s.Status()
	if commits.Load() != committed {
		t.Error("offers that were not checked are committed")
	}
	if s.Snapshot() != before || len(status.Problems) != 1 || status.Problems[0].Severity != diag.Warning {
		t.Errorf("after a panic: %+v", status)
	}
	panics.Store(false)
	relist()
	if status := s.Status(); len(status.Problems) != 0 {
		t.Errorf("after the panic is gone: %+v", status.Problems)
	}
}
