package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestNew_invalidOptions(t *testing.T) {
	for want, o := range map[string]engine.Options{
		"name":      {},
		"transport": {Name: "x", Transport: "carrier pigeon"},
		"mode":      {Name: "x", Mode: engine.Eager + 1},
		"policy":    {Name: "x", Policies: []engine.Policy{nil}},
		"hook":      {Name: "x", Hooks: []engine.Hook{nil}},
	} {
		if s, err := engine.New(o); s != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestNew_defaultTransport(t *testing.T) {
	for given, want := range map[string]string{"": "http", "http": "http", "stdio": "stdio"} {
		if got := unloaded(t, engine.Options{Transport: given}).Transport(); got != want {
			t.Errorf("%q: got %q", given, got)
		}
	}
}

type recursive struct{ Next *recursive }

func TestAddTool_invalid(t *testing.T) {
	s := unloaded(t, engine.Options{})
	for name, err := range map[string]error{
		"channel":   engine.AddTool(s, engine.ToolOptions{Name: "channel"}, func(context.Context, identity.Agent, struct{ C chan int }) (int, error) { return 0, nil }),
		"recursive": engine.AddTool(s, engine.ToolOptions{Name: "recursive"}, func(context.Context, identity.Agent, recursive) (int, error) { return 0, nil }),
		"output":    engine.AddTool(s, engine.ToolOptions{Name: "output"}, func(context.Context, identity.Agent, struct{}) (func(), error) { return nil, nil }),
		"":          engine.AddTool(s, engine.ToolOptions{}, func(context.Context, identity.Agent, struct{}) (int, error) { return 0, nil }),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), `add tool "`+name+`"`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Tools are added and called concurrently. An added tool is available to every later call.
func TestAddTool_concurrentCalls(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	var adders, callers sync.WaitGroup
	added := make(chan string, 64)
	for range 4 {
		callers.Go(func() {
			for name := range added {
				if got, err := s.Call(t.Context(), name, nil); err != nil || string(got.Value) != `"`+name+`"` {
					t.Errorf("%s: %s, %v", name, got.Value, err)
				}
				if _, err := s.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for adder := range 4 {
		adders.Go(func() {
			for i := range 10 {
				name := fmt.Sprintf("tool_%d_%d", adder, i)
				err := engine.AddTool(s, engine.ToolOptions{Name: name}, func(context.Context, identity.Agent, struct{}) (string, error) { return name, nil })
				if err != nil {
					t.Error(err)
				}
				added <- name
			}
		})
	}
	adders.Wait()
	close(added)
	callers.Wait()
	if n := s.Status().Tools; n != 41 {
		t.Errorf("%d tools are served", n)
	}
}

func TestAddTool_afterLoad(t *testing.T) {
	told := 0
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	stop := s.Watch(func([]string) { told++ })
	before := s.Snapshot()
	if err := engine.AddTool(s, engine.ToolOptions{Name: "late"}, func(context.Context, identity.Agent, struct{}) (int, error) { return 7, nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Call(t.Context(), "late", nil); err != nil || string(got.Value) != "7" {
		t.Errorf("%s, %v", got.Value, err)
	}
	if before.Tool("late") != nil || s.Snapshot().Revision() == before.Revision() || told != 1 {
		t.Errorf("the old snapshot changed, or the new one has its revision, or %d watchers were told", told)
	}
	stop()
	if err := engine.AddTool(s, engine.ToolOptions{Name: "later"}, func(context.Context, identity.Agent, struct{}) (int, error) { return 7, nil }); err != nil {
		t.Fatal(err)
	}
	if told != 1 {
		t.Error("a watcher was called after it stopped")
	}
}

func TestWatch_newSnapshotsOnly(t *testing.T) {
	folder := files("add.hcl", addTool)
	s := server(t, engine.Options{Files: engine.Files{Tools: folder}})
	told := 0
	defer s.Watch(func([]string) { told++ })()
	reload := func(want int, what string) {
		t.Helper()
		_, _ = s.Reload(t.Context(), engine.Change{All: true})
		if told != want {
			t.Errorf("%s: called %d times, want %d", what, told, want)
		}
	}
	reload(0, "nothing changed")
	folder["b.hcl"] = &fstest.MapFile{Data: []byte("tool"), Mode: 0o644}
	reload(0, "a broken file")
	folder["b.hcl"] = &fstest.MapFile{Data: []byte(`tool "b" { run = "return 1;" }`), Mode: 0o644}
	reload(1, "a new tool")
}

func TestOnEvent_lifecycle(t *testing.T) {
	var kinds []engine.EventKind
	var last engine.Event
	folder := files("add.hcl", addTool)
	s, err := engine.New(engine.Options{Name: "x", Files: engine.Files{Tools: folder}, OnEvent: func(e engine.Event) {
		kinds, last = append(kinds, e.Kind), e
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Load(t.Context())
	folder["b.hcl"] = &fstest.MapFile{Data: []byte("tool"), Mode: 0o644}
	_, _ = s.Reload(t.Context(), engine.Change{Paths: []string{"b.hcl"}})
	folder["b.hcl"] = &fstest.MapFile{Data: []byte(`tool "b" { run = "return 1;" }`), Mode: 0o644}
	_, _ = s.Reload(t.Context(), engine.Change{Paths: []string{"b.hcl"}})
	if last.Status.Tools != 2 || last.Status.Revision != s.Snapshot().Revision() || !last.Status.Synchronized {
		t.Errorf("the status after the reload: %+v", last.Status)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []engine.EventKind{engine.Started, engine.ReloadFailed, engine.Reloaded, engine.Draining, engine.Stopped}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestInfo_serverBlock(t *testing.T) {
	s := server(t, engine.Options{
		Name: "embedded", Version: "1.2.3", Description: "from Go",
		Files: engine.Files{Config: files("mcpd.hcl", "server {\n  name = \"customer-mcp\"\n  instructions = \"Ask first.\"\n}\n")},
	})
	want := engine.Info{Name: "customer-mcp", Version: "1.2.3", Description: "from Go", Instructions: "Ask first."}
	if diff := cmp.Diff(want, s.Snapshot().Info()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestExecute_loadsFiles(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	if s.Snapshot() != nil {
		t.Fatal("a snapshot is loaded already")
	}
	if got, err := s.Call(t.Context(), "add", map[string]any{"a": 2, "b": 3}); err != nil || string(got.Value) != `{"sum":5}` {
		t.Errorf("%s, %v", got.Value, err)
	}
}

func TestGoTool_invalidResult(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "typed" {
  output "n" { type = integer }
  run = <<JS
    return { n: "hunter2", more: "hunter2" };
  JS
}
`)}})
	got, err := s.Call(t.Context(), "typed", nil)
	if failed := callError(t, err); failed.Code != call.ExecutionError || strings.Contains(failed.Message, "hunter2") || got.Value != nil || got.Structured != nil {
		t.Errorf("got %v, with %s", failed, got.Value)
	}
}

func TestGoTool_undecodableArgument(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{Files: engine.Files{Tools: files()}, Logger: log.logger()})
	type in struct {
		When time.Time `json:"when"`
	}
	err := engine.AddTool(s, engine.ToolOptions{Name: "since"}, func(_ context.Context, _ identity.Agent, i in) (int, error) {
		return i.When.Year(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Call(t.Context(), "since", map[string]any{"when": "hunter2"})
	failed := callError(t, err)
	if failed.Code != call.InvalidInput || len(failed.Violations) != 1 || failed.Violations[0].Path != "/when" || failed.Schema == nil {
		t.Errorf("got %+v", failed)
	}
	if strings.Contains(failed.Message+log.String(), "hunter2") {
		t.Errorf("the argument is repeated:\n%s\n%s", failed.Message, log)
	}
}

// A tool costs the same however many there are, and tools of the same types share their schemas.
func TestAddTool_allocations(t *testing.T) {
	s, added := unloaded(t, engine.Options{}), 0
	type numbers struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	add := func() {
		added++
		o := engine.ToolOptions{Name: fmt.Sprint("add", added), Description: "Adds two numbers."}
		if err := engine.AddTool(s, o, func(_ context.Context, _ identity.Agent, in numbers) (numbers, error) { return in, nil }); err != nil {
			t.Fatal(err)
		}
	}
	const budget = 40
	if got := testing.AllocsPerRun(2000, add); got > budget {
		t.Errorf("%v allocations, want at most %d", got, budget)
	}
}
