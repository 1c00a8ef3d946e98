package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// Later legs are not charged to a rate.
func TestLimit_concurrencyPerLeg(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
policy "all" {
  requires_approval = "true"
  reason            = "Slow"
}
limit "one" {
  rate        = "2/h"
  concurrency = 1
}
`)}})
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	var running atomic.Int64
	goTool(t, s, "slow", func(context.Context) (string, error) {
		defer running.Add(-1)
		if running.Add(1) > 1 {
			return "two at once", nil
		}
		entered <- struct{}{}
		<-leave
		return "done", nil
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := toolCall("slow", `{}`), toolCall("slow", `{}`)
	first.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), first)), "accept")
	second.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), second)), "accept")
	var runs sync.WaitGroup
	runs.Go(func() { wantOutcome(t, s.Execute(t.Context(), first), `"done"`) })
	<-entered
	busy := s.Execute(t.Context(), second)
	if wantOutcome(t, busy, "POLICY_DENIED: over the limit of 1 call at once; try again in 1 s"); busy.Err != nil && !busy.Err.Limited {
		t.Error("RetryAfter is not set")
	}
	close(leave)
	runs.Wait()
	wantOutcome(t, s.Execute(t.Context(), second), `"done"`)
}
