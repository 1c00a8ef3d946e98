package worker

import (
	"context"
	"fmt"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/scripting"
)

// What a call may have this process hold for it, in bytes.
const (
	// maxMessage bounds a message, far beyond what a body can make of one.
	maxNotification = 1 << 20
	// maxPassed bounds what the host calls of a call pass that wait for their
	// answers: the process that they come from has them behind it.
	maxPendingBytes = 64 << 20
	// maxPassedByAll bounds what those of all calls pass, in the same way: the calls
	// that pass more than fairPassed are ended which would make it more.
	maxTotalBytes = 128 << 20
	fairBytes     = 256 << 10
	// maxAsked is how many host calls of a call run at once. Others wait.
	maxHostCalls = 64
)

// take takes a frame from the process in; ended says that it was the last. An
// error is the process's.
func (x *execution) dispatch(p *process, fr frame) (out scripting.Outcome, ended bool, err error) {
	switch fr.kind {
	case frameOutcome:
		out, err = x.decodeOutcome(fr.content)
		return out, true, err
	case frameHostCancel:
		failure, err := x.cancelHostCall(fr.content)
		return scripting.Outcome{Failure: failure}, failure != nil, err
	}
	h, err := readHost(fr.content)
	if err != nil {
		return out, false, err
	}
	failure, err := x.recorder.ApplyTail(h.tail, false)
	if failure == nil && err == nil {
		failure, err = x.recorder.RecordCall(h.seq, h.op, h.payload)
	}
	if err == nil {
		err = checkJSON(h.payload)
	}
	message := scripting.IsNotification(h.op)
	switch {
	case err != nil:
		return out, false, err
	case failure != nil:
		return scripting.Outcome{Failure: failure}, true, nil
	case message && len(h.payload) > maxNotification:
		return out, false, errWire
	case message:
		if scripting.CallHost(x.parent, x.host, h.seq, h.op, h.payload).Panicked() {
			return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.HostPanic, Message: "the host failed at " + h.op}}, true, nil
		}
		return out, false, nil
	case x.pendingBytes+len(h.payload) > maxPendingBytes:
		return scripting.Outcome{Failure: tooManyBytes("the body", maxPendingBytes)}, true, nil
	case x.pendingBytes+len(h.payload) > fairBytes && x.totalBytes.Load()+int64(len(h.payload)) > maxTotalBytes:
		return scripting.Outcome{Failure: tooManyBytes("all bodies", maxTotalBytes)}, true, nil
	}
	x.callHost(p, h)
	return out, false, nil
}

// ask asks the host, in its turn. The answer comes over answers.
func (x *execution) callHost(p *process, h hostFrame) {
	if x.pending++; x.pending == 1 {
		x.markWaiting(p)
		x.runningSince.Store(0)
		x.queue.release()
	}
	if x.responses == nil {
		x.responses, x.calls = make(chan scripting.HostResponse), map[int]hostCall{}
	}
	x.calls[h.seq] = hostCall{lazyctx.WithCancel(x.parent), len(h.payload)}
	x.addBytes(len(h.payload))
	x.queued = append(x.queued, h)
	x.startQueued()
}

// askNext asks the host as long as not too much is asked at once, and the call is
// not over.
func (x *execution) startQueued() {
	for x.pending-len(x.queued) < maxHostCalls && len(x.queued) > 0 && x.guard.ctx.Err() == nil {
		h := x.queued[0]
		x.queued = x.queued[1:]
		ctx, host := x.calls[h.seq].ctx, scripting.Host(checkedHost{x.host})
		if ctx.Err() != nil {
			host = canceledHost{}
		}
		go func() { x.responses <- scripting.CallHost(ctx, host, h.seq, h.op, h.payload) }()
	}
}

// nobody is asked what was dropped before its turn.
type canceledHost struct{}

// Do returns why nobody is asked.
func (canceledHost) Do(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
	return nil, ctx.Err()
}

// dropped cancels a host call that the process says nobody waits for any more. It
// may have been answered meanwhile. A failure ends the call.
func (x *execution) cancelHostCall(content []byte) (*scripting.Failure, error) {
	r := reader{rest: content}
	seq := r.number()
	if r.bad || seq > 1<<31 {
		return nil, errWire
	}
	// A run that is begun anew is to know why, before it knows how the call ended.
	if failure, err := x.recorder.ApplyTail(r.rest, false); failure != nil || err != nil {
		return failure, err
	}
	if a, open := x.calls[int(seq)]; open {
		a.ctx.Cancel(nil)
	}
	return nil, nil
}

func (x *execution) dropQueued() {
	dropped := len(x.queued)
	x.queued = nil
	if x.pending -= dropped; x.pending == 0 && dropped > 0 {
		x.queue.reacquire()
	}
}

// settle takes in an answer. A failure ends the call.
func (x *execution) recordResponse(a scripting.HostResponse) *scripting.Failure {
	if x.pending--; x.pending == 0 {
		x.queue.reacquire()
	}
	asked := x.calls[a.Seq()]
	asked.ctx.Cancel(nil)
	x.addBytes(-asked.bytes)
	delete(x.calls, a.Seq())
	x.startQueued()
	return x.recorder.RecordResponse(a)
}

// passes counts bytes that a host call passes, or that are let go of.
func (x *execution) addBytes(bytes int) {
	x.pendingBytes += bytes
	x.totalBytes.Add(int64(bytes))
}

func tooManyBytes(who string, most int) *scripting.Failure {
	return &scripting.Failure{
		Kind: scripting.Limit, Limit: "host_calls",
		Message: fmt.Sprintf("the host calls of %s that wait for their answers pass more than %d MiB together", who, most>>20),
	}
}

// answered passes an answer on to the process. A failure ends the call.
func (x *execution) forwardResponse(p *process, a scripting.HostResponse) *scripting.Failure {
	failure := x.recordResponse(a)
	if x.pending == 0 {
		x.markRunning(p)
	}
	if failure == nil {
		// When this fails the process has ended, and the call goes on elsewhere.
		_ = p.wire.send(frameResponse, func(dst []byte) []byte { return a.Append(append(dst, uvarint(x.id)...)) })
	}
	return failure
}

// bounds are those of JSON from a process. There are as many tokens as fit: what
// a body makes is bounded in bytes alone.
func childLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxChildFrame, Depth: 72, Tokens: maxChildFrame, Halves: true}
}

// gated lets JSON from a process through the gate.
func checkJSON(text []byte) error {
	if err := jsonguard.Check(text, childLimits()); err != nil {
		return fmt.Errorf("a process sends what is no JSON: %w", err)
	}
	return nil
}

// answerLimits are those of JSON that goes to a process. How large it may be, the
// grants say.
func responseLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxTotalBytes, Depth: 600, Tokens: maxTotalBytes, Halves: true}
}

// gatedHost lets the answers of a host through the gate, before a process decodes them.
type checkedHost struct{ scripting.Host }

// Do refuses an answer that is no JSON.
func (g checkedHost) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	data, err := g.Host.Do(ctx, seq, op, payload)
	if err != nil || len(data) == 0 {
		return data, err
	}
	if err := jsonguard.Check(data, responseLimits()); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the answer is no JSON that a script can have: " + err.Error()}
	}
	return data, nil
}
