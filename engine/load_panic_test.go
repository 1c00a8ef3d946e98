package engine_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/call"
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

// panickingFederation is an extension without upstream servers. It panics in the method that panics
// names.
type panickingFederation struct {
	federation.Federation
	panics  atomic.Pointer[string]
	relist  func() time.Duration
	commits atomic.Int64
}

func newPanickingFederation() *panickingFederation {
	f := &panickingFederation{Federation: federation.None()}
	f.panicIn("")
	return f
}

func (*panickingFederation) Name() string { return "test" }

func (f *panickingFederation) panicIn(method string) { f.panics.Store(&method) }

func (f *panickingFederation) step(method string) {
	if *f.panics.Load() == method {
		panic("the name of an offer")
	}
}

func (f *panickingFederation) Federate(o federation.Options) federation.Federation {
	f.relist = o.Relist
	return f
}

func (f *panickingFederation) Offers(blocks []definition.Upstream, keys map[string]string) catalog.Offers {
	offers := f.Federation.Offers(blocks, keys)
	f.step("Offers")
	return offers
}

// Commit counts. A commit writes tools that are pinned on first use to the lock file.
func (f *panickingFederation) Commit(c *catalog.Catalog) {
	f.commits.Add(1)
	f.step("Commit")
	f.Federation.Commit(c)
}

// SetServers panics for catalogs with more than one tool, so that it can restore a smaller one.
func (f *panickingFederation) SetServers(c *catalog.Catalog) {
	if len(c.Entries[call.Tools]) > 1 {
		f.step("SetServers")
	}
	f.Federation.SetServers(c)
}

// panickingServer returns a server that is not loaded. Its log is discarded.
func panickingServer(t *testing.T, f *panickingFederation, o engine.Options) *engine.Server {
	t.Helper()
	o.Name, o.Scripts.Programs, o.Extensions = "test", scripting.Inline(), []engine.Extension{f}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.panicIn("")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRelist_panicKeepsSnapshot(t *testing.T) {
	f := newPanickingFederation()
	s := panickingServer(t, f, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"Offers", "Commit"} {
		before, committed := s.Snapshot(), f.commits.Load()
		f.panicIn(method)
		f.relist()
		status := s.Status()
		if method == "Offers" && f.commits.Load() != committed {
			t.Error("offers that were not checked are committed")
		}
		if s.Snapshot() != before || len(status.Problems) != 1 || status.Problems[0].Severity != diag.Warning {
			t.Errorf("after a panic in %s: %+v", method, status)
		}
		f.panicIn("")
		f.relist()
		if status := s.Status(); len(status.Problems) != 0 {
			t.Errorf("after the panic in %s is gone: %+v", method, status.Problems)
		}
	}
}

// addTwice is addTool and a second tool.
var addTwice = addTool + strings.ReplaceAll(addTool, `"add"`, `"plus"`)

func TestReload_panicInPublishKeepsSnapshot(t *testing.T) {
	for _, method := range []string{"Offers", "Commit", "SetServers"} {
		t.Run(method, func(t *testing.T) {
			f, tools := newPanickingFederation(), files("add.hcl", addTool)
			var log bytes.Buffer
			s := panickingServer(t, f, engine.Options{Files: engine.Files{Tools: tools}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if _, err := s.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := s.Snapshot()
			tools["add.hcl"].Data = []byte(addTwice)
			f.panicIn(method)
			report, err := s.Reload(t.Context(), engine.Change{All: true})
			if err == nil || len(report.Problems) != 1 || report.Problems[0].Code != "file-internal" {
				t.Fatalf("reload: %v, %v", report.Problems, err)
			}
			if s.Snapshot() != before || report.Revision != before.Revision() || s.Status().Synchronized {
				t.Errorf("after the panic: %+v", s.Status())
			}
			if !strings.Contains(log.String(), "panickingFederation") || strings.Contains(log.String(), "name of an offer") {
				t.Errorf("the log has no stack, or the value of the panic:\n%s", &log)
			}
			if result, err := s.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}); err != nil || string(result.Value) != `{"sum":3}` {
				t.Errorf("call after the panic: %s, %v", result.Value, err)
			}
			f.panicIn("")
			if _, err := s.Reload(t.Context(), engine.Change{}); err != nil || s.Snapshot().Tool("plus") == nil {
				t.Errorf("the next reload: %v", err)
			}
		})
	}
}

// vacantChecks are checks of a frontend. Their CheckVacant panics if panics is set.
type vacantChecks struct {
	engine.FrontChecks
	panics *bool
}

func (c vacantChecks) CheckTool(engine.Metadata) error                { return nil }
func (c vacantChecks) CheckAuth([]engine.Auth) error                  { return nil }
func (c vacantChecks) CheckListen(engine.Listen, []engine.Auth) error { return nil }

func (c vacantChecks) CheckVacant(engine.Listen) error {
	if *c.panics {
		panic("an address")
	}
	return nil
}

func TestLoad_panicReleasesAuditLog(t *testing.T) {
	for _, step := range []string{"CheckVacant", "Commit", "SetServers"} {
		t.Run(step, func(t *testing.T) {
			f, vacant := newPanickingFederation(), step == "CheckVacant"
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			s := panickingServer(t, f, engine.Options{
				Files: engine.Files{Tools: files("add.hcl", addTwice), Config: files("mcpd.hcl", auditBlock(path, "  mode = \"strict\"\n"))},
				Front: vacantChecks{panics: &vacant},
			})
			f.panicIn(step)
			report, err := s.Load(t.Context())
			if err == nil || len(report.Problems) != 1 || report.Problems[0].Code != "file-internal" || s.Snapshot() != nil {
				t.Fatalf("load: %v, %v", report.Problems, err)
			}
			vacant = false
			f.panicIn("")
			if _, err := s.Load(t.Context()); err != nil {
				t.Fatalf("load after the panic: %v", err)
			}
			if _, err := s.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}); err != nil {
				t.Fatal(err)
			}
			if content, err := os.ReadFile(path); err != nil || !strings.Contains(string(content), `"add"`) {
				t.Errorf("the call is not audited: %s, %v", content, err)
			}
		})
	}
}

func TestReload_panicOfListenerIsLogged(t *testing.T) {
	var log bytes.Buffer
	f, tools, panics, notified := newPanickingFederation(), files("add.hcl", addTool), false, 0
	s := panickingServer(t, f, engine.Options{
		Files: engine.Files{Tools: tools}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OnEvent: func(engine.Event) {
			if panics {
				panic("an event")
			}
		},
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Watch(func([]string) {
		notified++
		if panics {
			panic("a change")
		}
	})
	panics = true
	tools["add.hcl"].Data = []byte(addTwice)
	report, err := s.Reload(t.Context(), engine.Change{All: true})
	panics = false
	if err != nil || len(report.Problems) != 0 || s.Snapshot().Tool("plus") == nil || !s.Status().Synchronized {
		t.Errorf("reload: %+v, %v", report, err)
	}
	if notified != 1 || strings.Count(log.String(), "recover panic in load") != 1 || strings.Count(log.String(), "recover panic in subscriber") != 1 {
		t.Errorf("notified %d times, log:\n%s", notified, &log)
	}
}
