package scripting

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dop251/goja"
)

// pendingCall is a host call with a promise that its response settles.
type pendingCall struct {
	read            func(hostResponse) (v, thrown goja.Value)
	resolve, reject func(any) error
	// ask is the payload of an ask; nil for other operations.
	ask []byte
	// started is set if this run has called the host. cancel cancels the call; it is nil if only
	// the end of the run cancels it, or if the host is in another process.
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

// hostResponse is the result of a host call.
type hostResponse struct {
	seq      int
	data     []byte
	refusal  *HostError
	panicked bool
	// suspended is set if the response comes in a later run.
	suspended bool
}

func (a hostResponse) toEntry() journalEntry {
	return journalEntry{kind: entryResponse, seq: a.seq, answer: a.data, refusal: a.refusal, panicked: a.panicked}
}

func (e *journalEntry) response() hostResponse {
	return hostResponse{seq: e.seq, data: e.answer, refusal: e.refusal, panicked: e.panicked}
}

// callHost starts a host call, and returns the promise of the value that read returns for the
// response. If read returns a thrown value, the promise is rejected with it.
func (r *execution) callHost(op string, payload []byte, read func(hostResponse) (v, thrown goja.Value)) goja.Value {
	return r.callHostUntil(nil, op, payload, read)
}

// errUnreadable is the error for a response that does not match its operation.
var errUnreadable = errors.New("the response of the host cannot be decoded")

// callAndRead starts a host call, and returns the promise of the value that read returns for its
// data.
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

// callHostUntil is callHost with a signal. When the signal is aborted, the call is abandoned and
// the promise rejected with the reason. The signal may be nil.
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

// abandonCall cancels a host call, rejects its promise with the reason, and drops its response. The
// call does not wait for it. The journal does not record it, because a replay repeats it.
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

// startCall calls the host in a goroutine, which always sends a response. It returns the function
// that cancels the host call, if droppable is set; otherwise nil.
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

// callSafely calls the host. A panic becomes a response too.
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

// toHostError returns the part of an error that a script may see.
func toHostError(err error) *HostError {
	var refused *HostError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return &HostError{Code: TimedOut, Message: "the host did not respond in time"}
	default:
		return &HostError{Code: Unavailable, Message: "the host could not respond"}
	}
}

// notifyHost sends a notification. A replay does not send it again.
func (r *execution) notifyHost(op string, payload []byte) {
	r.recordNotification(journalEntry{op: op, digest: digestOf(payload)}, payload)
}

// notifyPrinted sends a line of output, which the journal stores.
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

// callHostSync calls the host and waits for the response, while the script is blocked.
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

// awaitResponse returns the response to the last host call: from the journal, where it follows the
// call immediately, or from the host.
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

// mustJSON encodes a payload of strings and finite numbers.
func mustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return out
}

// textOrBase64 returns a text from a response, which is base64 if it is not valid text.
func textOrBase64(text, encoded string) (string, error) {
	if encoded == "" {
		return text, nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return string(data), err
}
