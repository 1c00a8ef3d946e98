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
	lane     *lane  // queue that admitted the call; the call leaves it while it waits for its host

	// since is the look of the executor at which the call started to compute; 0 while
	// the call waits for its host.
	since atomic.Int64

	attempt
	hostCalls
}

// attempt is the part of an execution that takes place in one process.
type attempt struct {
	id      uint64
	guard   guard
	frames  chan frame // frames from the process
	lease   uint64     // lease of the reader of the process; 0 while other calls read
	began   time.Time
	counted bool // the call is counted in busy of the process
	quick   bool // the call ended soon, and waited for nothing
}

// hostCalls has the calls of an execution to its host.
type hostCalls struct {
	asking  *lazyctx.Context      // parent context of the host calls
	answers chan scripting.Answer // nil before the first host call
	open    int                   // host calls without an answer
	queue   []hostFrame           // the open host calls that have not started
	asked   map[int]asking        // the open host calls, by number

	passed      int           // bytes of the arguments of the open host calls
	passedByAll *atomic.Int64 // the same of all calls of the executor
}

// asking is a host call that has no answer yet.
type asking struct {
	ctx   *lazyctx.Context
	bytes int // of its arguments
}

// frame is one that a process has sent, without the id of its call.
type frame struct {
	kind    byte
	content []byte
}

func newExecution(c scripting.Call, h scripting.Host, l *lane, passedByAll *atomic.Int64) (*execution, error) {
	if c.Journal == nil {
		c.Journal = scripting.NewJournal()
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	x := &execution{call: c, host: h, lane: l, hostCalls: hostCalls{asking: lazyctx.WithCancel(context.Background()), passedByAll: passedByAll}}
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
func (x *execution) land() {
	x.asking.Cancel(nil)
	x.drop()
	for x.open > 0 {
		_ = x.settle(<-x.answers) // the call is over whatever its journal holds
	}
	x.passes(-x.passed) // of those that were dropped
	x.recorder.Journal()
	x.lane.end()
}

// fly runs the call in a process, to its end or that of the process, which is a
// [*deathError]. A call that is over does not wait for a process to end that was
// killed.
func (x *execution) fly(ctx context.Context, p *process, grace time.Duration) (scripting.Outcome, error) {
	x.frames, x.lease = make(chan frame, 1), 0
	if !p.board(x) {
		x.mourn(ctx, p)
		return scripting.Outcome{}, p.missed()
	}
	x.began = time.Now()
	x.busy(p)
	defer x.idle(p)
	if err := x.board(ctx, p); err != nil {
		p.kill(endUnknown)
		x.mourn(ctx, p)
		return scripting.Outcome{}, p.death()
	}
	// Who waits in the system keeps one of the scheduler's processors for a while.
	// What else is at hand goes first; the process may have answered by then.
	runtime.Gosched()
	p.readFor(x)
	for doomed := p.doomed; ; {
		select {
		case fr := <-x.frames:
			if out, ended, err := x.took(ctx, p, fr, grace); ended {
				return out, err
			}
		case a := <-x.answers:
			if failure := x.answered(p, a); failure != nil {
				x.dismiss(p, grace)
				return scripting.Outcome{Failure: failure}, nil
			}
		case <-doomed:
			if ctx.Err() != nil {
				return scripting.Outcome{}, p.death()
			}
			doomed = nil
		case <-p.dead:
			return x.remains(ctx, p)
		}
	}
}

// mourn waits until a process that was killed has ended, unless the call is over.
func (x *execution) mourn(ctx context.Context, p *process) {
	select {
	case <-p.dead:
	case <-p.doomed:
		if ctx.Err() == nil {
			<-p.dead
		}
	}
}

// took takes a frame in, and reports whether the call has ended by it.
func (x *execution) took(ctx context.Context, p *process, fr frame, grace time.Duration) (scripting.Outcome, bool, error) {
	x.quick = fr.kind == frameOutcome && x.answers == nil && time.Since(x.began) < soon
	out, ended, err := x.take(p, fr)
	if !ended && err == nil {
		return out, false, nil
	}
	if err == nil && fr.kind != frameOutcome {
		x.dismiss(p, grace)
	}
	out, err = x.judged(ctx, p, out, err)
	return out, true, err
}

// dismiss ends a call in its process that has failed on this side, and kills the
// process when it holds the call for longer than grace: no call runs on there of
// which nobody knows.
func (x *execution) dismiss(p *process, grace time.Duration) {
	x.drop()
	overdue := time.AfterFunc(grace, func() { p.kill(endOverdue) })
	defer overdue.Stop()
	p.cancel(x.id)
	for {
		select {
		case fr := <-x.frames:
			if fr.kind == frameOutcome {
				return
			}
		case a := <-x.answers:
			_ = x.answered(p, a) // the call has failed already
		case <-p.doomed:
			return
		}
	}
}

// board sends the call to the process, and its program if the process does not have it.
func (x *execution) board(ctx context.Context, p *process) error {
	p.teaching.Lock()
	defer p.teaching.Unlock()
	known, err := p.teach(x.call.Program, x.id)
	if err != nil {
		return err
	}
	c := callFrame{id: x.id, program: known, call: x.call, journal: x.journal}
	if at, ok := ctx.Deadline(); ok {
		c.left = max(time.Until(at), time.Nanosecond)
	}
	return p.wire.send(frameCall, c.append)
}

func (x *execution) busy(p *process) {
	if !x.counted {
		x.counted = true
		p.busy.Add(1)
	}
	x.since.Store(p.looks.Load())
}

func (x *execution) idle(p *process) {
	if x.counted {
		x.counted = false
		p.busy.Add(-1)
	}
}

// remains takes what a process had sent before it ended.
func (x *execution) remains(ctx context.Context, p *process) (scripting.Outcome, error) {
	for {
		select {
		case fr := <-x.frames:
			if out, ended, err := x.take(p, fr); ended || err != nil {
				return x.judged(ctx, p, out, err)
			}
		default:
			return scripting.Outcome{}, p.death()
		}
	}
}

// collect waits for what the call had asked in a process that has died, and has
// its next run go on from there.
func (x *execution) collect(ctx context.Context) (*scripting.Failure, error) {
	for x.open > 0 {
		select {
		case a := <-x.answers:
			if failure := x.settle(a); failure != nil {
				return failure, nil
			}
		case <-ctx.Done():
			return scripting.Over(ctx), nil
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
	x.recorder.Rerun()
	return nil, nil
}

// guard ends the stay of a call in a process whose context has ended: the process
// is told, and killed when it holds the call for longer than grace. It is looked
// at by a watchdog.
type guard struct {
	// fixed at creation
	ctx     context.Context
	process *process
	id      uint64 // of the call
	grace   time.Duration
	words   *sync.WaitGroup // has who tells the process

	over time.Time // when the context was seen to have ended
}

// Look looks at the context.
func (g *guard) Look() bool {
	switch {
	case g.ctx.Err() == nil:
		return true
	case g.over.IsZero():
		g.over = time.Now()
		g.words.Go(func() { g.process.cancel(g.id) }) // may take as long as the process lives
		return true
	case time.Since(g.over) < g.grace:
		return true
	}
	g.process.kill(endOverdue)
	g.process.abandon() // to take its memory apart may take the system as long again
	return false
}

func (p *process) cancel(id uint64) {
	// When this fails the process has ended, or is about to.
	_ = p.wire.send(frameCancel, func(dst []byte) []byte { return append(dst, uvarint(id)...) })
}
