package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/scripting"
)

// hangingHooks runs scripts of tools, and lets hooks hang until they are released or their context
// ends. It records the phases of each call.
type hangingHooks struct {
	scripting.Executor
	release chan struct{}

	mu   sync.Mutex
	told map[string][]string
}

func (x *hangingHooks) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	if !bytes.Contains(c.Input, []byte(`"phase":`)) {
		return x.Executor.Run(ctx, c, h)
	}
	var event struct {
		Phase  string
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(c.Input, &event); err != nil {
		return scripting.Outcome{}, err
	}
	x.mu.Lock()
	x.told[event.CallID] = append(x.told[event.CallID], event.Phase)
	x.mu.Unlock()
	select {
	case <-x.release:
	case <-ctx.Done():
	}
	return scripting.Outcome{}, ctx.Err()
}

// Sixty calls with events of 30 MiB in total exceed the 16 MiB of the queue.
func TestHook_hanging(t *testing.T) {
	x := &hangingHooks{Executor: scripting.Inline(), release: make(chan struct{}), told: map[string][]string{}}
	s := server(t, engine.Options{Scripts: engine.Scripts{Executor: x}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{})}, Files: engine.Files{Tools: files("t.hcl", `
tool "size" {
  timeout = "1m"
  input "text" { type = string }
  run = "if (input.text[0] === 'x') throw new Error('no'); return input.text.length;"
}
hook "pager" {
  on      = ["start", "end", "error"]
  timeout = "1m"
  run     = "1;"
}
`)}})
	want := map[string][]string{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client := range 6 {
		last, text := "end", strings.Repeat("a", 256<<10)
		if client == 0 {
			last, text = "error", strings.Repeat("x", 256<<10)
		}
		clients.Go(func() {
			for range 10 {
				result := s.Execute(t.Context(), call.Request{Name: "size", Arguments: json.RawMessage(`{"text":"` + text + `"}`)})
				mu.Lock()
				want[result.CallID] = []string{"start", last}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	waits := s.Status().HookWaits
	if waits == 0 {
		t.Error("no call waited: the queue was never full")
	}
	counted := []string{"mcpd_hook_waits_total", "mcpd_hook_queue_runs"}
	metrics := seriesOf(s, counted...)
	if metrics["mcpd_hook_waits_total"] != fmt.Sprint(waits) || metrics["mcpd_hook_queue_runs"] == "0" {
		t.Errorf("the metrics of %d waits are %v", waits, metrics)
	}
	close(x.release)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSeries(t, s, "once all are told", map[string]string{"mcpd_hook_waits_total": fmt.Sprint(waits), "mcpd_hook_queue_runs": "0"}, counted...)
	if diff := cmp.Diff(want, x.told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
