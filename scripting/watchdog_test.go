package scripting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestARunIsInterruptedWithinATickOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watchdog
		ctx, cancel := context.WithCancel(t.Context())
		over, goesOn, left := &run{ctx: ctx, rt: openRun(t).rt}, &run{ctx: t.Context()}, &run{ctx: ctx}
		for _, r := range []*run{over, goesOn, left} {
			w.watch(r)
		}
		w.unwatch(left)
		time.Sleep(10 * tick)
		if over.ended.Load() {
			t.Error("a run was interrupted before its context ended")
		}
		cancel()
		time.Sleep(tick)
		synctest.Wait()
		if !over.ended.Load() || goesOn.ended.Load() || left.ended.Load() {
			t.Errorf("interrupted are %v, %v and %v, want the first", over.ended.Load(), goesOn.ended.Load(), left.ended.Load())
		}
		w.unwatch(over)
		w.unwatch(goesOn)
	})
}

func TestAWatchdogRestsWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watchdog
		r := &run{ctx: t.Context()}
		for range 2 {
			w.watch(r)
			time.Sleep(3 * tick)
			synctest.Wait()
			if !w.armed {
				t.Error("it rests while something runs")
			}
			w.unwatch(r)
			time.Sleep(3 * tick)
			synctest.Wait()
			if w.armed || w.first != nil {
				t.Error("it looks though nothing runs")
			}
		}
	})
}
