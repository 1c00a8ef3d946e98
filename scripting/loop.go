package scripting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dop251/goja"
)

// loop is what a call waits for.
type loop struct {
	// seq is the number of the last host call or message.
	seq int
	// asked are the host calls that the script has no answer to yet.
	asked map[int]hostCall
	// dropped are the host calls that the script let go of, and that have not
	// ended yet. It is true of those that this run has started.
	dropped map[int]bool
	// running is how many goroutines have not yet sent their answer.
	running int
	answers chan answer
	// hostContext ends when the call does.
	hostContext context.Context
	cancel      context.CancelFunc
	timers      timers
}

// hostCall is a host call whose answer settles a promise.
type hostCall struct {
	read            func(answer) (v, thrown goja.Value)
	resolve, reject func(any) error
	// ask is the payload of an ask, and nil for other operations.
	ask []byte
	// started says that this run has asked the host.
	started bool
}

// settle settles the promise.
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

// ask starts a host call and returns the promise of what read makes of its
// answer, or of what read says is thrown.
func (r *run) ask(op string, payload []byte, read func(answer) (v, thrown goja.Value)) goja.Value {
	promise, resolve, reject := r.rt.NewPromise()
	waiting := hostCall{read: read, resolve: resolve, reject: reject}
	if len(payload) > MaxPayload {
		if err := waiting.settle(answer{refusal: tooLarge()}); err != nil {
			r.abort(r.failed(err))
		}
		return r.rt.ToValue(promise)
	}
	r.loop.seq++
	seq := r.loop.seq
	if r.loop.asked == nil {
		r.loop.asked = map[int]hostCall{}
	}
	question := entryRecord{kind: entryAsked, seq: seq, op: op, digest: digestOf(payload)}
	_, past, failure := r.book.recall(question)
	if failure == nil && !past {
		failure = r.book.write(question)
	}
	if failure != nil {
		r.abort(failure)
		return r.rt.ToValue(promise)
	}
	waiting.started = !past
	if op == opAsk {
		waiting.ask = payload
	}
	r.loop.asked[seq] = waiting
	if !past {
		r.start(seq, op, payload)
	}
	return r.rt.ToValue(promise)
}

// drop lets go of a host call: its promise is rejected with the reason, and its
// answer goes nowhere. The call does not wait for it.
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
	if err := call.reject(reason); err != nil {
		panic(err)
	}
}

// held is how many host calls run that the script did not let go of.
func (l *loop) held() int {
	held := l.running
	for _, started := range l.dropped {
		if started {
			held--
		}
	}
	return held
}

// start asks the host in a goroutine, which always sends an answer.
func (r *run) start(seq int, op string, payload []byte) {
	l := &r.loop
	if l.cancel == nil {
		l.hostContext, l.cancel = context.WithCancel(r.ctx)
		l.answers = make(chan answer)
	}
	l.running++
	if remote, ok := r.host.(Remote); ok {
		remote.Begin(seq, op, payload, r.book.tail())
	}
	go func(ctx context.Context, h Host, answers chan<- answer) {
		answers <- do(ctx, h, seq, op, payload)
	}(l.hostContext, r.host, l.answers)
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
	case op == opAsk && errors.Is(err, ErrSuspended):
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
	r.loop.seq++
	message := entryRecord{kind: entryTold, seq: r.loop.seq, op: op, digest: digestOf(payload)}
	_, past, failure := r.book.recall(message)
	if failure == nil && !past {
		failure = r.book.write(message)
	}
	if failure == nil && !past {
		failure = r.pass(op, payload)
	}
	if failure != nil {
		r.abort(failure)
	}
}

// pass passes a message on.
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

// promiseOf returns the promise that v is, nil when it is none.
func promiseOf(v goja.Value) *goja.Promise {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return nil
	}
	return o.Export().(*goja.Promise)
}

// settle waits until nothing is left that the body started, and returns the
// value of the promise that the body returned, or the value that it returned.
// There is none when the run is suspended.
func (r *run) settle(value goja.Value) (goja.Value, *Failure) {
	promise := promiseOf(value)
	for r.failure == nil {
		if promise != nil && promise.State() == goja.PromiseStateRejected {
			return nil, r.thrown(promise.Result())
		}
		waits := promise != nil && promise.State() == goja.PromiseStatePending
		if !r.pending() && !(waits && r.waking()) || r.suspended() {
			break
		}
		if failure := r.step(); failure != nil {
			return nil, failure
		}
	}
	switch {
	case r.failure != nil:
		return nil, r.failure
	case r.suspended():
		return nil, nil
	case promise != nil && promise.State() == goja.PromiseStatePending:
		return nil, &Failure{Kind: Thrown, Message: "the body waits for a promise that nothing can settle any more"}
	case len(r.rejected) > 0:
		return nil, r.thrown(r.rejected[0].Result())
	case promise != nil:
		return promise.Result(), nil
	}
	return value, nil
}

// pending reports whether an answer or a timer is still to come.
func (r *run) pending() bool { return len(r.loop.asked) > 0 || r.loop.timers.pending() }

// waking reports whether a timer is set, of whichever kind.
func (r *run) waking() bool { return len(r.loop.timers.list) > 0 }

// step waits for the next answer or timer, or takes it from the journal, and
// lets the script go on with it.
func (r *run) step() *Failure {
	past, ok, failure := r.book.event()
	switch {
	case failure != nil:
		return failure
	case ok && past.kind == entryFired:
		return r.fire(past.seq)
	case ok:
		return r.deliver(past.given())
	}
	if arrived, ok := r.book.arrival(); ok {
		return r.receive(arrived.given())
	}
	return r.wait()
}

func (r *run) wait() *Failure {
	var due <-chan time.Time
	next, ticking := r.loop.timers.next()
	if ticking {
		timer := time.NewTimer(time.Until(next.due))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-r.ctx.Done():
		return Over(r.ctx)
	case a := <-r.loop.answers:
		r.loop.running--
		if a.suspended {
			return nil
		}
		return r.receive(a)
	case <-due:
		if failure := r.book.write(entryRecord{kind: entryFired, seq: next.id}); failure != nil {
			return failure
		}
		return r.fire(next.id)
	}
}

func (a answer) record() entryRecord {
	return entryRecord{kind: entryAnswered, seq: a.seq, answer: a.data, refusal: a.refusal, panicked: a.panicked}
}

// given is the answer that an entry records.
func (e *entryRecord) given() answer {
	return answer{seq: e.seq, data: e.answer, refusal: e.refusal, panicked: e.panicked}
}

// receive records an answer and gives it to the script.
func (r *run) receive(a answer) *Failure {
	if failure := r.book.write(a.record()); failure != nil {
		return failure
	}
	return r.deliver(a)
}

// deliver gives an answer to the script.
func (r *run) deliver(a answer) *Failure {
	if _, ok := r.loop.dropped[a.seq]; ok {
		delete(r.loop.dropped, a.seq)
		if a.panicked {
			return hostPanic("a host call")
		}
		return nil
	}
	call, ok := r.loop.asked[a.seq]
	if !ok {
		return r.book.nondeterministic("the answer is to no open host call")
	}
	delete(r.loop.asked, a.seq)
	if a.panicked {
		return hostPanic("a host call")
	}
	var err error
	if failure := r.safely(func() { err = call.settle(a) }); failure != nil {
		return failure
	}
	if err != nil && r.failure == nil {
		r.failure = r.failed(err)
	}
	return r.failure
}

// drain cancels the host calls that nobody waits for any more, and records
// how they ended. What is suspended has not ended.
func (r *run) drain() {
	l := &r.loop
	if l.cancel == nil {
		return
	}
	l.cancel()
	for ; l.running > 0; l.running-- {
		if a := <-l.answers; !a.suspended {
			_ = r.book.write(a.record()) // the call is over whatever its journal holds
		}
	}
}
