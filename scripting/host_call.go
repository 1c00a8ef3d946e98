package scripting

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dop251/goja"
)

// hostCall is a host call whose answer settles a promise.
type pendingCall struct {
	read            func(hostResponse) (v, thrown goja.Value)
	resolve, reject func(any) error
	// ask is the payload of an ask, and nil for other operations.
	ask []byte
	// started says that this run has asked the host, and cancel ends that; nil
	// when nothing is to end it before the call does, or it is on the other side
	// of a pipe.
	started bool
	cancel  context.CancelFunc
}

func (c pendingCall) settle(a hostResponse) error {
	v, thrown := c.read(a)
	if thrown != nil {
		return c.reject(thrown)
	}
	return c.resolve(v)
}

// answer is how a host call ended.
type hostResponse struct {
	seq      int
	data     []byte
	refusal  *HostError
	panicked bool
	// suspended says that the answer comes in another run.
	suspended bool
}

func (a hostResponse) toEntry() journalEntry {
	return journalEntry{kind: entryResponse, seq: a.seq, answer: a.data, refusal: a.refusal, panicked: a.panicked}
}

func (e *journalEntry) response() hostResponse {
	return hostResponse{seq: e.seq, data: e.answer, refusal: e.refusal, panicked: e.panicked}
}

// ask starts a host call and returns the promise of what read makes of its
// answer, or of what read says is thrown.
func (r *execution) callHost(op string, payload []byte, read func(hostResponse) (v, thrown goja.Value)) goja.Value {
	return r.callHostUntil(nil, op, payload, read)
}

// errUnreadable is an answer of a host that is not what its operation answers.
var errUnreadable = errors.New("the host's answer cannot be read")

// askAndRead starts a host call and returns the promise of what read makes of
// its answer.
func (r *execution) callAndRead(op string, payload []byte, read func(r *execution, data []byte) (goja.Value, error)) goja.Value {
	stack := r.callStack()
	return r.callHost(op, payload, func(a hostResponse) (v, thrown goja.Value) {
		if a.refusal != nil {
			return nil, r.hostError(a.refusal, stack)
		}
		v, err := read(r, a.data)
		if err != nil {
			return nil, r.hostError(&HostError{Code: Unavailable, Message: errUnreadable.Error()}, stack)
		}
		return v, nil
	})
}

// askUntil is ask of what is let go of when the signal is aborted: the promise
// is rejected with the reason then. A nil signal never is.
func (r *execution) callHostUntil(signal *abortSignal, op string, payload []byte, read func(hostResponse) (v, thrown goja.Value)) goja.Value {
	promise, resolve, reject := r.Runtime.NewPromise()
	if signal != nil && signal.reason != nil {
		if err := reject(signal.reason); err != nil {
			r.abort(r.failureOfError(err))
		}
		return r.Runtime.ToValue(promise)
	}
	waiting := pendingCall{read: read, resolve: resolve, reject: reject}
	if len(payload) > maxPayload {
		if err := waiting.settle(hostResponse{refusal: tooLarge()}); err != nil {
			r.abort(r.failureOfError(err))
		}
		return r.Runtime.ToValue(promise)
	}
	r.loop.seq++
	seq := r.loop.seq
	if r.loop.pending == nil {
		r.loop.pending = map[int]pendingCall{}
	}
	question := journalEntry{kind: entryCall, seq: seq, op: op, digest: digestOf(payload), answer: calledTool(r.Program.Kind, op, payload)}
	past, failure := r.journal.record(question)
	if failure != nil {
		r.abort(failure)
		return r.Runtime.ToValue(promise)
	}
	waiting.started = !past
	if op == OpAsk {
		waiting.ask = payload
	}
	if signal != nil {
		signal.follows = append(signal.follows, func(reason goja.Value) { r.abandonCall(seq, reason) })
	}
	if !past {
		waiting.cancel = r.startCall(seq, op, payload, signal != nil)
	}
	r.loop.pending[seq] = waiting
	return r.Runtime.ToValue(promise)
}

// drop lets go of a host call: it is cancelled, its promise is rejected with the
// reason, and its answer goes nowhere. The call does not wait for it. The journal
// does not tell of it, as the body does it again at a replay.
func (r *execution) abandonCall(seq int, reason goja.Value) {
	l := &r.loop
	call, ok := l.pending[seq]
	if !ok {
		return
	}
	delete(l.pending, seq)
	if l.abandoned == nil {
		l.abandoned = map[int]bool{}
	}
	l.abandoned[seq] = call.started
	if remote, ok := r.host.(Remote); ok && call.started {
		remote.CancelCall(seq, r.journal.tail())
	} else if call.cancel != nil {
		call.cancel()
	}
	if err := call.reject(reason); err != nil {
		panic(err)
	}
}

// start asks the host in a goroutine, which always sends an answer. It returns
// what cancels the host call, if that may be dropped, and nil otherwise.
func (r *execution) startCall(seq int, op string, payload []byte, droppable bool) (cancel context.CancelFunc) {
	l := &r.loop
	if l.cancel == nil {
		l.hostContext, l.cancel = context.WithCancel(r.ctx)
		l.responses = make(chan hostResponse)
	}
	l.running++
	ctx := l.hostContext
	if remote, ok := r.host.(Remote); ok {
		remote.StartCall(seq, op, payload, r.journal.tail())
	} else if droppable {
		ctx, cancel = context.WithCancel(ctx)
	}
	go func(h Host, answers chan<- hostResponse) {
		answers <- callSafely(ctx, h, seq, op, payload)
	}(r.host, l.responses)
	return cancel
}

// do asks the host. A panic becomes an answer too.
func callSafely(ctx context.Context, h Host, seq int, op string, payload []byte) (a hostResponse) {
	a.seq = seq
	defer func() {
		if recover() != nil {
			a = hostResponse{seq: seq, panicked: true}
		}
	}()
	data, err := h.Do(ctx, seq, op, payload)
	switch {
	case op == OpAsk && errors.Is(err, ErrSuspended):
		a.suspended = true
	case errors.Is(err, errPanicked):
		a.panicked = true
	case err != nil:
		a.refusal = toHostError(err)
	default:
		a.data = data
	}
	return a
}

// refusal makes what a script may see of an error.
func toHostError(err error) *HostError {
	var refused *HostError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return &HostError{Code: TimedOut, Message: "the host did not answer in time"}
	default:
		return &HostError{Code: Unavailable, Message: "the host could not answer"}
	}
}

// tell sends the host a message whose answer is ignored. A message that was
// sent before the replay is not sent again.
func (r *execution) notifyHost(op string, payload []byte) {
	r.recordNotification(journalEntry{op: op, digest: digestOf(payload)}, payload)
}

// tellPrinted sends what code prints, which the journal keeps.
func (r *execution) notifyPrinted(payload []byte, line string) {
	r.recordNotification(journalEntry{op: OpConsole, digest: digestOf(payload), answer: []byte(line)}, payload)
}

func (r *execution) recordNotification(message journalEntry, payload []byte) {
	r.loop.seq++
	message.kind, message.seq = entryNotification, r.loop.seq
	past, failure := r.journal.record(message)
	if failure == nil && !past {
		failure = r.sendNotification(message.op, payload)
	}
	if failure != nil {
		r.abort(failure)
	}
}

func (r *execution) sendNotification(op string, payload []byte) *Failure {
	if remote, ok := r.host.(Remote); ok {
		remote.StartCall(r.loop.seq, op, payload, r.journal.tail())
		return nil
	}
	if callSafely(r.ctx, r.host, r.loop.seq, op, payload).panicked {
		return hostPanic(op)
	}
	return nil
}

func hostPanic(op string) *Failure {
	return &Failure{Kind: HostPanic, Message: fmt.Sprintf("the host failed at %s", op)}
}

// demand asks the host and waits for the answer, while the body does nothing else.
func (r *execution) callHostSync(op string, payload []byte) (hostResponse, *Failure) {
	r.loop.seq++
	question := journalEntry{kind: entryCall, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	if _, failure := r.journal.record(question); failure != nil {
		return hostResponse{}, failure
	}
	given, failure := r.awaitResponse(op, payload)
	if failure == nil && given.panicked {
		failure = hostPanic(op)
	}
	return given, failure
}

// awaited returns the answer to the last host call: from the journal, where it
// follows the call at once, or else from the host.
func (r *execution) awaitResponse(op string, payload []byte) (given hostResponse, failure *Failure) {
	before, ok, failure := r.journal.replayEvent()
	switch {
	case failure != nil:
		return hostResponse{}, failure
	case ok:
		return before.response(), nil
	}
	if arrived, ok := r.journal.bufferedFor(r.loop.seq); ok {
		given = arrived.response()
	} else {
		if remote, ok := r.host.(Remote); ok {
			remote.StartCall(r.loop.seq, op, payload, r.journal.tail())
		}
		given = callSafely(r.ctx, r.host, r.loop.seq, op, payload)
	}
	return given, r.journal.write(given.toEntry())
}

// mustJSON encodes a payload, which is made of strings and finite numbers.
func mustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return out
}

// textOrBase64 returns what an answer of a host has as text, or as base64 where it is no text.
func textOrBase64(text, encoded string) (string, error) {
	if encoded == "" {
		return text, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return string(data), err
}
