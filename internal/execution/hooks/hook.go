// Package hooks runs the hooks in files, asynchronously to the calls that trigger them.
//
// A [Hook] is a compiled hook block. A [Runner] queues a [Run] of it with the event, and runs it
// soon after, in order for each call. Every hook has its own queue, so that a slow hook delays no
// other. A failed run is logged and counted, and does not affect the call. No run is dropped: when
// the queue of a hook is full, calls wait, and its runs are cut short until there is capacity.
//
// A run belongs to the trace of its call, which may have ended, and is logged with the ids of the
// call. It has no principal: it has neither the values nor the tokens of the caller in its event.
//
// The caller of this package builds the events and selects the hooks.
package hooks

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/scripting"
)

const (
	// maxParallel is the number of parallel runs per hook; runs of one call are in order.
	maxParallel = 8
	// maxWaiting bounds the bytes of the queued runs of one hook, about ten thousand runs.
	maxWaiting = 16 << 20
	// runOverhead is the weight of a run in addition to its event.
	runOverhead = 256
	// congestedTimeout is the timeout of a run while the queue is congested.
	congestedTimeout = 10 * time.Millisecond
)

// Spec is the definition of a hook. It must not be modified after [Runner.Hook].
type Spec struct {
	Name    string
	Timeout time.Duration
	// Limits are the limits of a run. A zero field means the default.
	Limits  scripting.Limits
	Program *scripting.Program
	Grants  *host.Grants
}

// Hook is a hook that can run. It belongs to the runner that created it, and needs no Close.
type Hook struct {
	Spec
	queue *workqueue.Queue[Run]
	// lastLogged is the last congestion with a logged run.
	lastLogged atomic.Uint64
}

// Run is one run of a hook.
type Run struct {
	Event json.RawMessage
	// CallID, RequestID and Origin identify the call of the event, its request and its span. Runs
	// with the same OrderKey keep their order.
	CallID, RequestID string
	Origin            observe.Origin
	OrderKey          uint64
	// Owner is the owner of the call (see [scripting.Call]).
	Owner uint64
	// SecretKeys maps secret names to the keys of their definitions.
	SecretKeys map[string]string
	// Hide redacts sensitive variables in the output of the run.
	Hide redact.Text
}
