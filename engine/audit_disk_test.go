//go:build linux

package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// fullDisk simulates a full disk: the process cannot write a file that is larger than the log is
// now, until the returned function is called or the test ends. The log must be the largest file
// that the process writes.
func fullDisk(t *testing.T, path string) (room func()) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	limit(syscall.Rlimit{Cur: uint64(info.Size()), Max: before.Max})
	room = func() { limit(before) }
	t.Cleanup(room) // the limit applies to all tests of the process
	return room
}

// endings has one call per outcome.
var endings = []struct {
	request call.Request
	code    call.Code
}{
	{toolCall("pay", `{"amount":7}`), ""},
	{toolCall("twice", `{}`), ""},
	{toolCall("pay", `{"amount":-7}`), call.PolicyDenied},
	{toolCall("pay", `{"amount":700}`), call.ExecutionError},
	{toolCall("pay", `{"amount":"seven"}`), call.InvalidInput},
	{toolCall("pya", `{}`), call.ToolNotFound},
	{toolCall("shut", `{}`), call.PolicyDenied},
	{toolCall("never", `{}`), call.PolicyDenied},
	{toolCall("slow", `{}`), call.Timeout},
	{call.Request{Kind: call.Resources, Name: "nothing://here"}, call.ToolNotFound},
	{call.Request{Kind: call.Prompts, Name: "nothing"}, call.ToolNotFound},
	{call.Request{Name: "pay", Argument: "nothing"}, call.InvalidInput},
}

const endingTools = ledgered + `
tool "shut" {
  run = "return 1"
}
policy "closed" {
  tools  = ["shut"]
  deny   = "true"
  reason = "closed"
}
tool "never" {
  run = "return 1"
}
limit "none" {
  tools = ["never"]
  rate  = "1/h"
}
tool "long" {
  input "text" { type = string }
  run = "return 1"
}
tool "slow" {
  timeout = "10ms"
  run     = "while (true) {}"
}
prompt "completed" {
  argument "a" {
    complete { run = "log.info('a completion ran'); return []" }
  }
  message "user" { text = "done" }
}
`

// In strict mode no result and no denial is returned without an outcome record, and nothing is done
// without an intent record. In relaxed mode the lines stay in memory.
func TestAudit_strictFullDisk(t *testing.T) {
	const refusal = "the server cannot audit the call; try again in a second"
	for _, mode := range []string{"strict", "relaxed"} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		config := files("mcpd.hcl", auditBlock(path, "  mode = \""+mode+"\"\n  capture = [\"long\"]\n"))
		var log logBuffer
		s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("pay.hcl", endingTools), Config: config}, Logger: log.logger()})
		var acts atomic.Int64
		goTool(t, s, "acts", func(context.Context) (string, error) { acts.Add(1); return "", nil })
		if _, err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantOutcome(t, s.Execute(t.Context(), toolCall("never", `{}`)), "1")
		for range 20 {
			wantOutcome(t, s.Execute(t.Context(), toolCall("long", `{"text":"`+strings.Repeat("x", 60<<10)+`"}`)), "1")
		}
		room := fullDisk(t, path)
		for _, end := range endings {
			err := s.Execute(t.Context(), end.request).Err
			switch {
			case mode == "relaxed":
				if code := endedBy(err); code != end.code {
					t.Errorf("%s %s %s: got %v", mode, end.request.Name, end.request.Arguments, err)
				}
			case err == nil || err.Code != call.ExecutionError || err.Message != refusal || err.RetryAfter == 0:
				t.Errorf("%s %s %s: got %v", mode, end.request.Name, end.request.Arguments, err)
			}
		}
		s.Execute(t.Context(), toolCall("acts", `{}`))
		s.Execute(t.Context(), call.Request{Kind: call.Prompts, Name: "completed", Argument: "a", Arguments: json.RawMessage(`{"value":"x"}`)})
		done := int64(0)
		if mode == "relaxed" {
			done = 1
		}
		if ran := int64(strings.Count(log.String(), "a completion ran")); acts.Load() != done || ran != done {
			t.Errorf("%s: a tool ran %d times and a completion %d", mode, acts.Load(), ran)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Execute(gone, toolCall("pay", `{"amount":-7}`)).Err; endedBy(err) != call.PolicyDenied {
			t.Errorf("%s: a cancelled caller gets %v", mode, err)
		}
		room()
		for _, end := range endings {
			if err := s.Execute(t.Context(), end.request).Err; endedBy(err) != end.code {
				t.Errorf("%s %s, with free space: %v", mode, end.request.Name, err)
			}
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		linesOf(t, path)
	}
}

func endedBy(err *call.Error) call.Code {
	if err == nil {
		return ""
	}
	return err.Code
}
