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
	queue    *queue // queue that admitted the call; the call leaves it while it waits for its host

	// since is the look of the executor at which the call started to compute; 0 while
	// the call waits for its host.
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
	counted bool // the call is counted in busy of the process
	fast    bool // the call ended soon, and waited for nothing
}

// hostCalls has the calls of an execution to its host.
type hostCalls struct {
	parent    *lazyctx.Context            // parent context of the host calls
	responses chan scripting.HostResponse // nil before the first host call
	pending   int                         // host calls without an answer
	queued    []hostFrame                 // the open host calls that have not started
	calls     map[int]hostCall            // the open host calls, by number

	pendingBytes int           // bytes of the arguments of the open host calls
	totalBytes   *atomic.Int64 // the same of all calls of the executor
}

// asking is a host call that has no answer yet.
type hostCall struct {
	ctx   *lazyctx.Context
	bytes int // of its arguments
}

// frame is one that a process has sent, without the id of its call.
type frame struct {
	kind    byte
	content []byte
}

func newExecution(c scripting.Call, h scripting.Host, l *queue, passedByAll *atomic.Int64) (*execution, error) {
	if c.Journal == nil {
		c.Journal = scripting.NewJournal()
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	x := &execution{call: c, host: h, queue: l, hostCalls: hostCalls{parent: lazyctx.WithCancel(context.Background()), totalBytes: passedByAll}}
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

// memory returns how much the process of the call may have, in bytes.
func (x *execution) memory(o Options) int64 {
	if m := x.call.Limits.Memory; m > 0 {
		return m
	}
	return o.Memory
}

// land ends a call: what it had asked of its host is cancelled and awaited, and
// its journal is whole.
func (x *execution) finish() {
	x.parent.Cancel(nil)
	x.dropQueued()
	for x.pending > 0 {
		_ = x.recordResponse(<-x.responses) // the call is over whatever its journal holds
	}
	x.addBytes(-x.pendingBytes) // of those that were dropped
	x.recorder.Journal()
	x.queue.finish()
}

// fly runs the call in a process, to its end or that of the process, which is a
// [*deathError]. A call that is over does not wait for a process to end that was
// killed.
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
	// Who waits in the system keeps one of the scheduler's processors for a while.
	// What else is at hand goes first; the process may have answered by then.
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

// mourn waits until a process that was killed has ended, unless the call is over.
func (x *execution) waitExit(ctx context.Context, p *process) {
	select {
	case <-p.exited:
	case <-p.killed:
		if ctx.Err() == nil {
			<-p.exited
		}
	}
}

// took takes a frame in, and reports whether the call has ended by it.
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

// dismiss ends a call in its process that has failed on this side, and kills the
// process when it holds the call for longer than grace: no call runs on there of
// which nobody knows.
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

// board sends the call to the process, and its program if the process does not have it.
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

// remains takes what a process had sent before it ended.
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

// collect waits for what the call had asked in a process that has died, and has
// its next run go on from there.
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

// guard ends the stay of a call in a process whose context has ended: the process
// is told, and killed when it holds the call for longer than grace. It is looked
// at by a watchdog.
type cancelGuard struct {
	// fixed at creation
	ctx       context.Context
	process   *process
	id        uint64 // of the call
	killDelay time.Duration
	senders   *sync.WaitGroup // has who tells the process

	ended time.Time // when the context was seen to have ended
}

// Look looks at the context.
func (g *cancelGuard) Look() bool {
	switch {
	case g.ctx.Err() == nil:
		return true
	case g.ended.IsZero():
		g.ended = time.Now()
		g.senders.Go(func() { g.process.cancel(g.id) }) // may take as long as the process lives
		return true
	case time.Since(g.ended) < g.killDelay:
		return true
	}
	g.process.kill(exitTimeout)
	g.process.discardOutput() // to take its memory apart may take the system as long again
	return false
}

func (p *process) cancel(id uint64) {
	// When this fails the process has ended, or is about to.
	_ = p.wire.send(frameCancel, func(dst []byte) []byte { return append(dst, uvarint(id)...) })
}
