package osproc_test

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
)

// Counts garbage collections, because each trim collects once.
func TestTrimIdle_afterActivity(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var activity atomic.Uint64
		done := make(chan struct{})
		go func() { defer close(done); osproc.TrimIdle(ctx, activity.Load) }()
		trims := func(intervals int, active bool, bytes int) int64 {
			before := collections()
			for range intervals {
				if active {
					activity.Add(1)
				}
				garbage = make([]byte, bytes)
				time.Sleep(osproc.TrimInterval)
				synctest.Wait()
			}
			return collections() - before
		}
		garbage = make([]byte, 8<<20)
		if n := trims(10, false, 0); n != 1 {
			t.Errorf("%d trims after the start, want 1", n)
		}
		if n := trims(10, true, 1<<20); n != 0 {
			t.Errorf("%d trims while active, want 0", n)
		}
		if n := trims(10, false, 0); n != 1 {
			t.Errorf("%d trims after the activity, want 1", n)
		}
		if n := trims(1, true, 1<<10) + trims(10, false, 0); n != 0 {
			t.Errorf("%d trims after little activity, want 0", n)
		}
		stop()
		<-done
	})
}

func TestUnmapIdle_afterActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var activity, count atomic.Uint64
		done := make(chan struct{})
		go func() {
			defer close(done)
			osproc.UnmapIdle(ctx, activity.Load, func() { count.Add(1) })
		}()
		unmapped := func(intervals int, active bool) uint64 {
			before := count.Load()
			for range intervals {
				if active {
					activity.Add(1)
				}
				time.Sleep(osproc.TrimInterval)
				synctest.Wait()
			}
			return count.Load() - before
		}
		for _, step := range []struct {
			active    bool
			intervals int
			want      uint64
		}{{false, 10, 1}, {true, 10, 0}, {false, 1, 0}, {false, 10, 1}, {false, 10, 0}} {
			if n := unmapped(step.intervals, step.active); n != step.want {
				t.Errorf("active %t: unmapped %d times in %d intervals, want %d", step.active, n, step.intervals, step.want)
			}
		}
		stop()
		<-done
	})
}

var garbage []byte // keeps the compiler from dropping allocations

func collections() int64 {
	var s debug.GCStats
	debug.ReadGCStats(&s)
	return s.NumGC
}
