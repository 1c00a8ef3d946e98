package telemetry

import "time"

// Stats are what is not counted here but fetched when somebody looks. Numbers that
// are uint64 only ever grow.
type Stats struct {
	Snapshot SnapshotStats
	// Running are the calls that have begun and not ended. Draining says that no
	// new ones are taken.
	Running  int
	Draining bool
	// Unrecorded says that the audit log cannot be written.
	Unrecorded bool
	Hooks      HookStats
	Workers    WorkerStats
	Fronts     []FrontStats
}

// SnapshotStats are of what serves.
type SnapshotStats struct {
	// Revision is empty and Since is zero when nothing serves yet.
	Revision string
	Since    time.Time
	// Synchronized says that the snapshot is made of the files as last read.
	Synchronized                                                  bool
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
}

// HookStats are of the hooks in files.
type HookStats struct {
	// Failures are runs that failed, and Waits calls that found the queue full.
	Failures, Waits uint64
	// Queued are the runs that wait or are under way.
	Queued int
}

// WorkerStats are of the processes that run scripts. All are 0 where there are none.
type WorkerStats struct {
	// Processes are alive, and Calls are in them.
	Processes, Calls int
	// Waiting are the calls that wait to begin; Refused are those that would have
	// begun too late.
	Waiting int
	Refused uint64
	// Started are the processes that were ever started.
	Started uint64
	Deaths  Deaths
}

// Deaths are the processes that ended before they had nothing more to do, by cause.
type Deaths struct {
	// Overdue are those killed for a call that did not end, Memory for what they
	// had, and Protocol for what they said; Crashed ended by themselves.
	Overdue, Memory, Protocol, Crashed uint64
}

// FrontStats are of one transport: streamable, sse, websocket, stdio or rest.
type FrontStats struct {
	Transport             string
	Sessions, Connections int
}
