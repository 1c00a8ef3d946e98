// Package hooks runs the hooks in files, off the path of the calls that they
// watch.
//
// A [Hook] is a compiled hook block. A [Runner] queues a [Run] of it with what
// happened, and runs it a moment later, in order for each call. Every hook has
// a queue of its own, so that one that is slow delays no other. A run that fails
// is logged and counted, and never felt by the call. Every run is begun: when a
// hook lags so far behind that its queue is full, calls wait for room, and its
// runs are cut short so that there is some soon.
//
// A run is a part of the trace of its call, which may be over, and the log knows it by the
// ids of the call. It runs for nobody: it has neither the values nor the tokens of the
// principal whose call it is told of.
//
// What the events say, and which hooks want them, is decided elsewhere.
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
	// width is how many runs of one hook go on at once; those of one call run
	// in order.
	maxParallel = 8
	// maxWaiting bounds the bytes of the runs of one hook that wait: some
	// ten thousand.
	maxWaiting = 16 << 20
	// overhead is what a run weighs beside its event.
	runOverhead = 256
	// hurried is the most that a run may take while the queue is crowded.
	congestedTimeout = 10 * time.Millisecond
)

// Definition is what a hook consists of. It is not changed after [Runner.Hook].
type Spec struct {
	Name    string
	Timeout time.Duration
	// Limits bound a run. A zero member means its default.
	Limits  scripting.Limits
	Program *scripting.Program
	Grants  *host.Grants
}

// Hook is a hook that can run. It belongs to the runner that made it, and
// needs no closing.
type Hook struct {
	Spec
	queue *workqueue.Queue[Run]
	// told is the last crowding in which the log was told of a run cut short.
	lastLogged atomic.Uint64
}

type Run struct {
	Event json.RawMessage
	// CallID names the call that the event is of, RequestID its request, and Origin its
	// span. Runs of the same Lane keep their order.
	CallID, RequestID string
	Origin            observe.Origin
	OrderKey          uint64
	// Owner is that of the call (see [scripting.Call.Owner]).
	Owner uint64
	// SecretKeys name the definitions of secrets that hold for the call.
	SecretKeys map[string]string
	// Hide takes sensitive variables out of what the run writes.
	Hide redact.Text
}
