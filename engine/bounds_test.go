package engine_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

const boundedTools = `
tool "narrow" {
  limits {
    output      = "1KiB"
    concurrency = 1
  }
  input "n" { type = integer }
  run = <<JS
    await new Promise((done) => setTimeout(done, 1));
    return "x".repeat(input.n);
  JS
}
tool "silent" {
  input "n" { type = integer }
  run = <<JS
    await new Promise((done) => setTimeout(done, 1));
    return input.n;
  JS
}
tool "wide" {
  run = <<JS
    return "x".repeat(100000);
  JS
}
`

func TestBounds_output(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", boundedTools)}})
	for n, want := range map[int]call.Code{1000: "", 2000: call.ExecutionError} {
		_, err := s.Call(t.Context(), "narrow", map[string]any{"n": n})
		if got := errorCode(err); got != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestBounds_ceilingDefaults(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", boundedTools), Config: files("mcpd.hcl", "ceiling { output = \"10KiB\" }\n")}})
	if _, err := s.Call(t.Context(), "wide", nil); errorCode(err) != call.ExecutionError {
		t.Errorf("got %v", err)
	}
}

// Excess calls are rejected, and later calls pass.
func TestBounds_toolConcurrency(t *testing.T) {
	callInParallel(t, server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", boundedTools)}}), "narrow")
}

func TestBounds_ceilingConcurrency(t *testing.T) {
	callInParallel(t, server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", boundedTools), Config: files("mcpd.hcl", "ceiling { concurrency = 1 }\n")}}), "silent")
}

// callInParallel makes many parallel calls of a tool with a concurrency of one.
func callInParallel(t *testing.T, s *engine.Server, tool string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var ran, refused int
	for range 50 {
		all.Go(func() {
			_, err := s.Call(t.Context(), tool, map[string]any{"n": 1})
			mu.Lock()
			defer mu.Unlock()
			switch code := errorCode(err); {
			case code == "":
				ran++
			case code == call.PolicyDenied && strings.Contains(err.Error(), "at once"):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if ran == 0 || refused == 0 || ran+refused != 50 {
		t.Errorf("%d ran, %d were rejected", ran, refused)
	}
	if _, err := s.Call(t.Context(), tool, map[string]any{"n": 1}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// errorCode returns the code of an error; empty for nil.
func errorCode(err error) call.Code {
	var failed *call.Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}
