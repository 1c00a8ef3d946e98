package scripting

import (
	"github.com/dop251/goja"
)

// makeEnv makes env: an object with those of the granted variables that are set.
// They are asked for when the body begins, and are the same in every replay.
func (r *run) makeEnv() (goja.Value, error) {
	a, failure := r.demand("env", []byte("{}"))
	switch {
	case failure != nil:
		r.abort(failure)
		return nil, errStopped
	case a.refusal != nil && r.ctx.Err() != nil:
		return nil, errStopped
	case a.refusal != nil:
		return nil, a.refusal
	}
	return r.data(a.data, true)
}

// demand asks the host and waits for the answer, while the body does nothing else.
func (r *run) demand(op string, payload []byte) (answer, *Failure) {
	r.loop.seq++
	question := entryRecord{kind: entryAsked, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	_, past, failure := r.book.recall(question)
	if failure == nil && !past {
		failure = r.book.write(question)
	}
	if failure != nil {
		return answer{}, failure
	}
	given, failure := r.awaited(op, payload)
	if failure == nil && given.panicked {
		failure = hostPanic(op)
	}
	return given, failure
}

// awaited returns the answer to the last host call: from the journal, where it
// follows the call at once, or else from the host.
func (r *run) awaited(op string, payload []byte) (given answer, failure *Failure) {
	before, ok, failure := r.book.event()
	switch {
	case failure != nil:
		return answer{}, failure
	case ok:
		return before.given(), nil
	}
	if arrived, ok := r.book.arrivalOf(r.loop.seq); ok {
		given = arrived.given()
	} else {
		if remote, ok := r.host.(Remote); ok {
			remote.Begin(r.loop.seq, op, payload, r.book.tail())
		}
		given = do(r.ctx, r.host, r.loop.seq, op, payload)
	}
	return given, r.book.write(given.record())
}
