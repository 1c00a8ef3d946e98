package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// addBlockingTool adds a Go tool that signals its start, and blocks until it is released.
func addBlockingTool(t *testing.T, s *engine.Server) (begun, release chan struct{}) {
	t.Helper()
	begun, release = make(chan struct{}), make(chan struct{})
	err := engine.AddTool(s, engine.ToolOptions{Name: "gated", Timeout: time.Minute}, func(context.Context, identity.Agent, struct{}) (struct{}, error) {
		begun <- struct{}{}
		<-release
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return begun, release
}

func callError(t *testing.T, err error) *call.Error {
	t.Helper()
	var failed *call.Error
	if !errors.As(err, &failed) {
		t.Fatalf("%v is not a call.Error", err)
	}
	return failed
}

func TestConcurrency_rejectsExcessCalls(t *testing.T) {
	var seen recorder
	s := server(t, engine.Options{
		Files: engine.Files{Config: files("mcpd.hcl", "limits { concurrency = 1 }\n"), Tools: files("add.hcl", addTool)}, Hooks: []engine.Hook{seen.hook},
	})
	begun, release := addBlockingTool(t, s)
	ended := make(chan error)
	go func() {
		_, err := s.Call(context.Background(), "gated", nil)
		ended <- err
	}()
	<-begun
	_, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2})
	failed := callError(t, err)
	if failed.Code != call.ExecutionError || !failed.Overloaded || failed.RetryAfter <= 0 {
		t.Errorf("got %+v", failed)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the first call: %v", err)
	}
	if _, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2}); err != nil {
		t.Errorf("after the release: %v", err)
	}
	want := []string{"start gated", "start add", "error add EXECUTION_ERROR", "end gated", "start add", "end add"}
	if diff := cmp.Diff(want, seen.events); diff != "" {
		t.Errorf("hooks (-want +got)\n%s", diff)
	}
}

func TestDrain_waitsForRunningCalls(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}})
	begun, release := addBlockingTool(t, s)
	ended, drained := make(chan error), make(chan error)
	go func() {
		_, err := s.Call(context.Background(), "gated", nil)
		ended <- err
	}()
	<-begun
	tooSoon, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Drain(tooSoon); !errors.Is(err, context.Canceled) {
		t.Errorf("drained with %v while a call runs", err)
	}
	_, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2})
	if failed := callError(t, err); !failed.Overloaded || !strings.Contains(failed.Message, "shutting down") {
		t.Errorf("got %+v", failed)
	}
	if status := s.Status(); !status.Draining || status.Running != 1 {
		t.Errorf("status %+v", status)
	}
	go func() { drained <- s.Drain(context.Background()) }()
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestClose_waitsForHooks(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{Logger: log.logger(), Files: engine.Files{Tools: files("add.hcl", addTool, "hook.hcl", `
hook "slow" {
  on  = ["end"]
  run = <<JS
    await new Promise(done => setTimeout(done, 20));
    log.info("hook ran");
  JS
}
`)}})
	const calls = 10
	for range calls {
		if _, err := s.Call(t.Context(), "add", map[string]any{"a": 1, "b": 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "hook ran"); got != calls {
		t.Errorf("%d hooks ran, want %d", got, calls)
	}
}

func TestExecute_callerGone(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("loop.hcl", `
tool "loops" {
  timeout = "1h"
  run = <<JS
    log.info("begun");
    for (;;) {}
  JS
}
`)}})
	for _, test := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		code call.Code
	}{
		{"that goes away", context.WithCancel, call.ExecutionError},
		{"whose deadline passes", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, call.Timeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := test.end(t.Context())
			defer cancel()
			begun := make(chan struct{})
			go func() {
				select {
				case <-begun:
				case <-ctx.Done():
				}
				if test.code == call.ExecutionError {
					cancel()
				}
			}()
			result := s.Execute(ctx, call.Request{Name: "loops", Emit: signal(begun)})
			if result.Err == nil || result.Err.Code != test.code {
				t.Errorf("got %v, want %s", result.Err, test.code)
			}
		})
	}
}

// signal is closed by the first log record.
type signal chan struct{}

func (s signal) Progress(float64, *float64, string) {}
func (signal) CloseStream()                         {}

func (s signal) Log(_, _ string, _ json.RawMessage) { close(s) }
