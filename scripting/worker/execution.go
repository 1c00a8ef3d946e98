package worker

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/scripting"
)

// execution is one call until it ends, in one process after another. It belongs to
// the goroutine of the call, except for the channels.
type execution struct {
	call     scripting.Call
	host     scripting.Host
	recorder *scripting.Recorder
	journal  []byte // journal that the next process replays; nil for the first
	queue    *queue // queue that admitted the call

	// runningSince is the tick at which the call started to compute; 0 while the call waits for its
	// host.
	runningSince atomic.Int64

	attempt
	hostCalls
}

// attempt is the part of an execution that takes place in one process.
type attempt struct {
	id      uint64
	guard   cancelGuard
	frames  chan frame // frames from the process
	lease   uint64     // lease of the reader of the process; 0 while other calls read
	started time.Time
	counted bool // the call is counted in process.running
	fast    bool // the call ended soon, and waited for nothing
}

// hostCalls has the calls of an execution to its host.
type hostCalls struct {
	parent    *lazyctx.Context            // parent context of the host calls
	responses chan scripting.HostResponse // nil before the first host call
	pending   int                         // host calls without an answer
	queued    []hostFrame                 // the pending host calls that have not started
	calls     map[int]hostCall            // the pending host calls, by number

	pendingBytes int           // bytes of the arguments of the pending host calls
	totalBytes   *atomic.Int64 // pendingBytes of all calls of the executor
}

// hostCall is a host call without a response.
type hostCall struct {
	ctx   *lazyctx.Context
	bytes int // of its arguments
}

// frame is a frame from a process, without the id of its call.
type frame struct {
	kind    byte
	content []byte
}

func newExecution(c scripting.Call, h scripting.Host, q *queue, totalBytes *atomic.Int64) (*execution, error) {
	if c.Journal == nil {
		c.Journal = scripting.NewJournal()
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	x := &execution{call: c, host: h, queue: q, hostCalls: hostCalls{parent: lazyctx.WithCancel(context.Background()), totalBytes: totalBytes}}
	if c.Journal.Len() > 0 {
		journal, err := c.Journal.MarshalBinary()
		if err != nil {
			return nil, err
		}
		x.journal = journal
	}
	x.recorder = scripting.NewRecorder(c)
	x.call.Seed = x.recorder.Seed()
	return x, nil
}

// memory returns the memory limit for the process of the call, in bytes.
func (x *execution) memory(o Options) int64 {
	if m := x.call.Limits.Memory; m > 0 {
		return m
	}
	return o.Memory
}

// finish ends the call. It cancels the pending host calls, waits for them, and completes the
// journal.
func (x *execution) finish() {
	x.parent.Cancel(nil)
	x.dropQueued()
	for x.pending > 0 {
		_ = x.recordResponse(<-x.responses) // the call has ended, whatever its journal holds
	}
	x.addBytes(-x.pendingBytes) // bytes of the dropped host calls
	x.recorder.Journal()
	x.queue.finish()
}

// run runs the call in p until the call ends or the process exits. The error for an exit is an
// [*exitError]. If the call has ended, run does not wait for a killed process to exit.
func (x *execution) run(ctx context.Context, p *process, grace time.Duration) (scripting.Outcome, error) {
	x.frames, x.lease = make(chan frame, 1), 0
	if !p.attach(x) {
		x.waitExit(ctx, p)
		return scripting.Outcome{}, p.notStartedErr()
	}
	x.started = time.Now()
	x.markRunning(p)
	defer x.markWaiting(p)
	if err := x.sendCall(ctx, p); err != nil {
		p.kill(exitUnknown)
		x.waitExit(ctx, p)
		return scripting.Outcome{}, p.exitErr()
	}
	// A goroutine that waits in a system call keeps a P for a while. Let other goroutines run
	// first; the process may have responded by then.
	runtime.Gosched()
	p.readFor(x)
	for doomed := p.killed; ; {
		select {
		case fr := <-x.frames:
			if out, ended, err := x.handleFrame(ctx, p, fr, grace); ended {
				return out, err
			}
		case a := <-x.responses:
			if failure := x.forwardResponse(p, a); failure != nil {
				x.cancelRemote(p, grace)
				return scripting.Outcome{Failure: failure}, nil
			}
		case <-doomed:
			if ctx.Err() != nil {
				return scripting.Outcome{}, p.exitErr()
			}
			doomed = nil
		case <-p.exited:
			return x.drainFrames(ctx, p)
		}
	}
}

// waitExit waits for a killed process to exit, or for the end of ctx.
func (x *execution) waitExit(ctx context.Context, p *process) {
	select {
	case <-p.exited:
	case <-p.killed:
		if ctx.Err() == nil {
			<-p.exited
		}
	}
}

// handleFrame handles a frame, and reports whether the call has ended.
func (x *execution) handleFrame(ctx context.Context, p *process, fr frame, grace time.Duration) (scripting.Outcome, bool, error) {
	x.fast = fr.kind == frameOutcome && x.responses == nil && time.Since(x.started) < fastTime
	out, ended, err := x.dispatch(p, fr)
	if !ended && err == nil {
		return out, false, nil
	}
	if err == nil && fr.kind != frameOutcome {
		x.cancelRemote(p, grace)
	}
	out, err = x.finalOutcome(ctx, p, out, err)
	return out, true, err
}

// cancelRemote ends a call in its process after the call failed on this side. It kills the process
// if the call holds it for longer than grace, so that no call runs unobserved.
func (x *execution) cancelRemote(p *process, grace time.Duration) {
	x.dropQueued()
	overdue := time.AfterFunc(grace, func() { p.kill(exitTimeout) })
	defer overdue.Stop()
	p.cancel(x.id)
	for {
		select {
		case fr := <-x.frames:
			if fr.kind == frameOutcome {
				return
			}
		case a := <-x.responses:
			_ = x.forwardResponse(p, a) // the call has failed already
		case <-p.killed:
			return
		}
	}
}

// sendCall sends the call to the process, with its program if the process does not have it.
func (x *execution) sendCall(ctx context.Context, p *process) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	known, err := p.ensureProgram(x.call.Program, x.id)
	if err != nil {
		return err
	}
	c := callFrame{id: x.id, program: known, call: x.call, journal: x.journal}
	if at, ok := ctx.Deadline(); ok {
		c.remaining = max(time.Until(at), time.Nanosecond)
	}
	return p.wire.send(frameCall, c.append)
}

func (x *execution) markRunning(p *process) {
	if !x.counted {
		x.counted = true
		p.running.Add(1)
	}
	x.runningSince.Store(p.ticks.Load())
}

func (x *execution) markWaiting(p *process) {
	if x.counted {
		x.counted = false
		p.running.Add(-1)
	}
}

// drainFrames handles the frames that a process sent before it exited.
func (x *execution) drainFrames(ctx context.Context, p *process) (scripting.Outcome, error) {
	for {
		select {
		case fr := <-x.frames:
			if out, ended, err := x.dispatch(p, fr); ended || err != nil {
				return x.finalOutcome(ctx, p, out, err)
			}
		default:
			return scripting.Outcome{}, p.exitErr()
		}
	}
}

// prepareRetry waits for the pending host calls of a call in a dead process, and updates the
// journal for the next attempt.
func (x *execution) prepareRetry(ctx context.Context) (*scripting.Failure, error) {
	for x.pending > 0 {
		select {
		case a := <-x.responses:
			if failure := x.recordResponse(a); failure != nil {
				return failure, nil
			}
		case <-ctx.Done():
			return scripting.ContextFailure(ctx), nil
		}
	}
	journal := x.recorder.Journal()
	x.journal = nil
	if journal.Len() > 0 {
		text, err := journal.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("run a call again: %w", err)
		}
		x.journal = text
	}
	x.recorder.Rewind()
	return nil, nil
}

// cancelGuard cancels a call in its process when ctx ends, and kills the process if the call does
// not end within killDelay. A watchdog calls Look.
type cancelGuard struct {
	// fixed at creation
	ctx       context.Context
	process   *process
	id        uint64 // of the call
	killDelay time.Duration
	senders   *sync.WaitGroup // has the goroutines that send cancellations

	ended time.Time // when Look observed the end of ctx
}

// Look checks ctx. It reports whether to call it again.
func (g *cancelGuard) Look() bool {
	switch {
	case g.ctx.Err() == nil:
		return true
	case g.ended.IsZero():
		g.ended = time.Now()
		g.senders.Go(func() { g.process.cancel(g.id) }) // may block as long as the process lives
		return true
	case time.Since(g.ended) < g.killDelay:
		return true
	}
	g.process.kill(exitTimeout)
	g.process.discardOutput() // the system may need as long again to free the memory
	return false
}

func (p *process) cancel(id uint64) {
	// An error means that the process has exited, or is about to.
	_ = p.wire.send(frameCancel, func(dst []byte) []byte { return append(dst, uvarint(id)...) })
}
