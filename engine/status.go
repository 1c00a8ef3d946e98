package engine

import (
	"time"

	"github.com/mcpd/mcpd/diag"
)

// Status is the state of a server at one moment, for health checks, logs and metrics.
type Status struct {
	// Revision is the content hash of the snapshot that serves; empty when none does.
	Revision string
	// Since is when that snapshot was published.
	Since time.Time
	// Tools, Resources and the others count what the snapshot holds. Files of
	// folders are resources.
	Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
	// Synchronized says that the snapshot is made of the files as last read.
	// It is false after a load that failed.
	Synchronized bool
	// Problems are the diagnostics of the last load: errors when it failed,
	// warnings otherwise.
	Problems diag.List
	// Loads and FailedLoads count loads since the server was made.
	Loads, FailedLoads uint64
	// Calls and FailedCalls count calls that have ended, nested ones too; Running counts those that have not.
	Calls, FailedCalls uint64
	Running            int
	// HookFailures counts runs of hooks that failed or were cut short; HookWaits
	// counts the times that a call had to wait because the queue of a hook was full.
	HookFailures, HookWaits uint64
	// Draining says that no new calls are taken.
	Draining bool
}
