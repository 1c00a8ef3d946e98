package osproc

import (
	"context"
	"runtime/debug"
	"time"
)

// TrimInterval is the interval at which [TrimIdle] looks for activity.
const TrimInterval = 3 * time.Second

// TrimIdle returns the free memory of an idle process to the system until ctx ends: once
// after each period of activity, when activity has not changed for one to two intervals.
// activity returns a number that each call and each load changes. The runtime keeps the
// memory of a busy time as long as no new allocations start a garbage collection.
func TrimIdle(ctx context.Context, activity func() uint64) {
	tick := time.NewTicker(TrimInterval)
	defer tick.Stop()
	seen, trimmed := activity(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch now := activity(); {
		case now != seen:
			seen, trimmed = now, false
		case !trimmed:
			debug.FreeOSMemory() // also collects garbage
			trimmed = true
		}
	}
}
