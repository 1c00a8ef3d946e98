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
type hostCall struct {
	read            func(answer) (v, thrown goja.Value)
	resolve, reject func(any) error
	// ask is the payload of an ask, and nil for other operations.
	ask []byte
	// started says that this run has asked the host, and cancel ends that; nil
	// when nothing is to end it before the call does, or it is on the other side
	// of a pipe.
	started bool
	cancel  context.CancelFunc
}

func (c hostCall) settle(a answer) error {
	v, thrown := c.read(a)
	if thrown != nil {
		return c.reject(thrown)
	}
	return c.resolve(v)
}

// answer is how a host call ended.
type answer struct {
	seq      int
	data     []byte
	refusal  *HostError
	panicked bool
	// suspended says that the answer comes in another run.
	suspended bool
}

func (a answer) record() entryRecord {
	return entryRecord{kind: entryAnswered, seq: a.seq, answer: a.data, refusal: a.refusal, panicked: a.panicked}
}

func (e *entryRecord) given() answer {
	return answer{seq: e.seq, data: e.answer, refusal: e.refusal, panicked: e.panicked}
}

// ask starts a host call and returns the promise of what read makes of its
// answer, or of what read says is thrown.
func (r *run) ask(op string, payload []byte, read func(answer) (v, thrown goja.Value)) goja.Value {
	return r.askUntil(nil, op, payload, read)
}

// errUnreadable is an answer of a host that is not what its operation answers.
var errUnreadable = errors.New("the host's answer cannot be read")

// askAndRead starts a host call and returns the promise of what read makes of
// its answer.
func (r *run) askAndRead(op string, payload []byte, read func(r *run, data []byte) (goja.Value, error)) goja.Value {
	stack := r.at()
	return r.ask(op, payload, func(a answer) (v, thrown goja.Value) {
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
func (r *run) askUntil(signal *abortSignal, op string, payload []byte, read func(answer) (v, thrown goja.Value)) goja.Value {
	promise, resolve, reject := r.Runtime.NewPromise()
	if signal != nil && signal.reason != nil {
		if err := reject(signal.reason); err != nil {
			r.abort(r.failed(err))
		}
		return r.Runtime.ToValue(promise)
	}
	waiting := hostCall{read: read, resolve: resolve, reject: reject}
	if len(payload) > maxPayload {
		if err := waiting.settle(answer{refusal: tooLarge()}); err != nil {
			r.abort(r.failed(err))
		}
		return r.Runtime.ToValue(promise)
	}
	r.loop.seq++
	seq := r.loop.seq
	if r.loop.asked == nil {
		r.loop.asked = map[int]hostCall{}
	}
	question := entryRecord{kind: entryAsked, seq: seq, op: op, digest: digestOf(payload), answer: toolCalled(r.Program.Kind, op, payload)}
	past, failure := r.book.note(question)
	if failure != nil {
		r.abort(failure)
		return r.Runtime.ToValue(promise)
	}
	waiting.started = !past
	if op == OpAsk {
		waiting.ask = payload
	}
	if signal != nil {
		signal.follows = append(signal.follows, func(reason goja.Value) { r.drop(seq, reason) })
	}
	if !past {
		waiting.cancel = r.start(seq, op, payload, signal != nil)
	}
	r.loop.asked[seq] = waiting
	return r.Runtime.ToValue(promise)
}

// drop lets go of a host call: it is cancelled, its promise is rejected with the
// reason, and its answer goes nowhere. The call does not wait for it. The journal
// does not tell of it, as the body does it again at a replay.
func (r *run) drop(seq int, reason goja.Value) {
	l := &r.loop
	call, ok := l.asked[seq]
	if !ok {
		return
	}
	delete(l.asked, seq)
	if l.dropped == nil {
		l.dropped = map[int]bool{}
	}
	l.dropped[seq] = call.started
	if remote, ok := r.host.(Remote); ok && call.started {
		remote.Drop(seq, r.book.tail())
	} else if call.cancel != nil {
		call.cancel()
	}
	if err := call.reject(reason); err != nil {
		panic(err)
	}
}

// start asks the host in a goroutine, which always sends an answer. It returns
// what cancels the host call, if that may be dropped, and nil otherwise.
func (r *run) start(seq int, op string, payload []byte, droppable bool) (cancel context.CancelFunc) {
	l := &r.loop
	if l.cancel == nil {
		l.hostContext, l.cancel = context.WithCancel(r.ctx)
		l.answers = make(chan answer)
	}
	l.running++
	ctx := l.hostContext
	if remote, ok := r.host.(Remote); ok {
		remote.Begin(seq, op, payload, r.book.tail())
	} else if droppable {
		ctx, cancel = context.WithCancel(ctx)
	}
	go func(h Host, answers chan<- answer) {
		answers <- do(ctx, h, seq, op, payload)
	}(r.host, l.answers)
	return cancel
}

// do asks the host. A panic becomes an answer too.
func do(ctx context.Context, h Host, seq int, op string, payload []byte) (a answer) {
	a.seq = seq
	defer func() {
		if recover() != nil {
			a = answer{seq: seq, panicked: true}
		}
	}()
	data, err := h.Do(ctx, seq, op, payload)
	switch {
	case op == OpAsk && errors.Is(err, ErrSuspended):
		a.suspended = true
	case errors.Is(err, errPanicked):
		a.panicked = true
	case err != nil:
		a.refusal = refusal(err)
	default:
		a.data = data
	}
	return a
}

// refusal makes what a script may see of an error.
func refusal(err error) *HostError {
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
func (r *run) tell(op string, payload []byte) {
	r.message(entryRecord{op: op, digest: digestOf(payload)}, payload)
}

// tellPrinted sends what code prints, which the journal keeps.
func (r *run) tellPrinted(payload []byte, line string) {
	r.message(entryRecord{op: OpConsole, digest: digestOf(payload), answer: []byte(line)}, payload)
}

func (r *run) message(message entryRecord, payload []byte) {
	r.loop.seq++
	message.kind, message.seq = entryTold, r.loop.seq
	past, failure := r.book.note(message)
	if failure == nil && !past {
		failure = r.pass(message.op, payload)
	}
	if failure != nil {
		r.abort(failure)
	}
}

func (r *run) pass(op string, payload []byte) *Failure {
	if remote, ok := r.host.(Remote); ok {
		remote.Begin(r.loop.seq, op, payload, r.book.tail())
		return nil
	}
	if do(r.ctx, r.host, r.loop.seq, op, payload).panicked {
		return hostPanic(op)
	}
	return nil
}

func hostPanic(op string) *Failure {
	return &Failure{Kind: HostPanic, Message: fmt.Sprintf("the host failed at %s", op)}
}

// demand asks the host and waits for the answer, while the body does nothing else.
func (r *run) demand(op string, payload []byte) (answer, *Failure) {
	r.loop.seq++
	question := entryRecord{kind: entryAsked, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	if _, failure := r.book.note(question); failure != nil {
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
