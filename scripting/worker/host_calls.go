package worker

import (
	"context"
	"fmt"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/scripting"
)

// Limits of what a call may store in this process, in bytes.
const (
	// maxNotification limits a notification, far beyond what a script can produce.
	maxNotification = 1 << 20
	// maxPendingBytes limits the arguments of the pending host calls of one call. The worker
	// process no longer stores them.
	maxPendingBytes = 64 << 20
	// maxTotalBytes limits the arguments of the pending host calls of all calls. A call with more
	// than fairBytes that would exceed the limit ends.
	maxTotalBytes = 128 << 20
	fairBytes     = 256 << 10
	// maxHostCalls is how many host calls of one call run at once. More are queued.
	maxHostCalls = 64
)

// dispatch handles a frame. ended reports whether it was the last one. An error means that the
// process violated the protocol.
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
		return scripting.Outcome{Failure: tooManyBytes("the script", maxPendingBytes)}, true, nil
	case x.pendingBytes+len(h.payload) > fairBytes && x.totalBytes.Load()+int64(len(h.payload)) > maxTotalBytes:
		return scripting.Outcome{Failure: tooManyBytes("all scripts", maxTotalBytes)}, true, nil
	}
	x.callHost(p, h)
	return out, false, nil
}

// callHost starts a host call, or queues it. The response arrives in x.responses.
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

// startQueued starts queued host calls up to maxHostCalls, unless the call has ended.
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

// canceledHost is the host of calls that were canceled in the queue.
type canceledHost struct{}

// Do returns the error of ctx.
func (canceledHost) Do(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
	return nil, ctx.Err()
}

// cancelHostCall cancels a host call for which the process no longer waits. It may have a response
// already. A failure ends the call.
func (x *execution) cancelHostCall(content []byte) (*scripting.Failure, error) {
	r := reader{rest: content}
	seq := r.number()
	if r.bad || seq > 1<<31 {
		return nil, errWire
	}
	// A new attempt must replay the reason before it replays the end of the call.
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

// recordResponse records a response. A failure ends the call.
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

// addBytes counts the arguments of host calls.
func (x *execution) addBytes(bytes int) {
	x.pendingBytes += bytes
	x.totalBytes.Add(int64(bytes))
}

func tooManyBytes(who string, limit int) *scripting.Failure {
	return &scripting.Failure{
		Kind: scripting.Limit, Limit: "host_calls",
		Message: fmt.Sprintf("the pending host calls of %s have arguments of more than %d MiB", who, limit>>20),
	}
}

// forwardResponse sends a response to the process. A failure ends the call.
func (x *execution) forwardResponse(p *process, a scripting.HostResponse) *scripting.Failure {
	failure := x.recordResponse(a)
	if x.pending == 0 {
		x.markRunning(p)
	}
	if failure == nil {
		// An error means that the process has exited, and the call continues elsewhere.
		_ = p.wire.send(frameResponse, func(dst []byte) []byte { return a.Append(append(dst, uvarint(x.id)...)) })
	}
	return failure
}

// childLimits are the limits of JSON from a process. The number of tokens is limited only by the
// size: only the size of the output of a script is limited.
func childLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxChildFrame, Depth: 72, Tokens: maxChildFrame, Halves: true}
}

// checkJSON checks JSON from a process.
func checkJSON(text []byte) error {
	if err := jsonguard.Check(text, childLimits()); err != nil {
		return fmt.Errorf("invalid JSON from a worker process: %w", err)
	}
	return nil
}

// responseLimits are the limits of JSON that is sent to a process. Grants limit its size.
func responseLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxTotalBytes, Depth: 600, Tokens: maxTotalBytes, Halves: true}
}

// checkedHost checks the responses of a host before a process decodes them.
type checkedHost struct{ scripting.Host }

// Do returns an error for a response that is not JSON.
func (g checkedHost) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	data, err := g.Host.Do(ctx, seq, op, payload)
	if err != nil || len(data) == 0 {
		return data, err
	}
	if err := jsonguard.Check(data, responseLimits()); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the response is not valid JSON for a script: " + err.Error()}
	}
	return data, nil
}
