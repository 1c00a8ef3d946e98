// Package osproc has the operating system functions of this server: process
// groups, processor time, and the timer slack of threads (PR_SET_TIMERSLACK of
// prctl(2)).
//
// A thread of the Go runtime monitors the others. While anything runs, it
// sleeps for 20 µs at a time, and threads that look for work sleep for 3 µs.
// With Linux's default slack of 50 µs, these sleeps take up to a quarter of the
// time of a process that answers many short requests. No timeout of mcpd is
// below 1 ms.
package osproc

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// TrimInterval is the interval at which [TrimIdle] looks for activity.
	TrimInterval = 3 * time.Second
	// trimBytes is the amount of allocated memory that is worth a garbage collection.
	trimBytes = 4 << 20
)

// UnmapIdle calls unmap once after the start and after each period of activity, when
// activity has not changed for two to three intervals, until ctx ends. unmap is
// [Program.Unmap]: a load uses most of a program, and an idle process little of it. It
// runs later than the garbage collection of [TrimIdle], which uses the program too.
func UnmapIdle(ctx context.Context, activity func() uint64, unmap func()) {
	tick := time.NewTicker(TrimInterval)
	defer tick.Stop()
	seen, unchanged := activity(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := activity(); now != seen {
			seen, unchanged = now, 0
		} else if unchanged++; unchanged == 2 {
			unmap()
		}
	}
}

// TrimIdle returns the free memory of an idle process to the system until ctx ends: once
// after each period of activity, when activity has not changed for one to two intervals.
// activity returns a number that each call and each load changes. The runtime keeps the
// memory of a busy time as long as no new allocations start a garbage collection.
func TrimIdle(ctx context.Context, activity func() uint64) {
	tick := time.NewTicker(TrimInterval)
	defer tick.Stop()
	seen, trimmed := activity(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := activity(); now != seen {
			seen = now
		} else if allocated() >= trimmed+trimBytes {
			debug.FreeOSMemory() // also collects garbage
			trimmed = allocated()
		}
	}
}

// allocated returns the bytes that the process has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
