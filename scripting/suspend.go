package scripting

import (
	"maps"
	"slices"
)

// Ask is an ask that waits for its answer.
type Ask struct {
	// Seq is the number of the host call, which [Journal.Answer] takes.
	Seq int
	// Payload is that of the operation ask (see the package documentation).
	Payload []byte
}

// suspended reports whether only answers that come in another run can let the
// script go on.
func (r *run) suspended() bool {
	l := &r.loop
	return len(l.asked) > 0 && l.held() == 0 && !l.timers.pending() && !r.book.replaying() && len(r.book.arrived) == 0
}

// suspend ends the run with the asks that are open. A host call of another
// kind is open only when a journal was cut short.
func (r *run) suspend() Outcome {
	var asks []Ask
	for _, seq := range slices.Sorted(maps.Keys(r.loop.asked)) {
		payload := r.loop.asked[seq].ask
		if payload == nil {
			return Outcome{Failure: r.book.nondeterministic("there is no answer to a host call")}
		}
		asks = append(asks, Ask{seq, payload})
	}
	return Outcome{Suspended: asks}
}
