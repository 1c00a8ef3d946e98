package tasks_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// TestNoLegOutlivesACancelledTask answers and cancels at the same moment: whoever
// is first, the task is cancelled in the end and nothing runs.
func TestNoLegOutlivesACancelledTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			runs.Add(1)
			defer runs.Add(-1)
			if leg.Resume == nil {
				return asks("a")
			}
			return untilCut(ctx, leg)
		})
		var all []string
		for range 200 {
			all = append(all, start(t, of).ID)
		}
		synctest.Wait()
		var racers sync.WaitGroup
		for _, id := range all {
			racers.Go(func() {
				if err := of.Update(t.Context(), ann, id, answers{"a": named("A")}); err != nil {
					t.Error(err)
				}
			})
			racers.Go(func() {
				if err := of.Cancel(ann.Principal, id); err != nil {
					t.Error(err)
				}
			})
		}
		racers.Wait()
		synctest.Wait()
		if n := runs.Load(); n != 0 {
			t.Errorf("%d legs still run", n)
		}
		for _, id := range all {
			if got := settled(t, of, id); !got.Cancelled {
				t.Errorf("got %+v", got)
			}
		}
	})
}
