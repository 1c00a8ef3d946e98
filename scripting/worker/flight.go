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

// flight is one call, from process to process until it ends. It belongs to the
// goroutine of the call, but for the channels.
type flight struct {
	call     scripting.Call
	host     scripting.Host
	recorder *scripting.Recorder
	journal  []byte // to go on from; nil at first

	id     uint64
	guard  guard      // of its stay in a process
	frames chan frame // from the process that the call is in
	lease  uint64     // by which the call reads that process; 0 while others do

	// lane is where the call began, and which it leaves while it waits.
	lane *lane
	// since is the look of the executor from which on the call computes; 0 while
	// it waits.
	since atomic.Int64

	began time.Time // there
	// counted says that it is among those that are busy there.
	counted bool
	// quick says that the call has ended soon after, and waited for nothing.
	quick bool

	answers chan scripting.Answer // nil before the first host call
	open    int                   // host calls that are not answered yet
	queue   []hostFrame           // those of them that the host was not asked yet
	asked   map[int]asking        // by their numbers
	passed  int                   // the sum of these
	// passedByAll is the sum of those of all calls.
	passedByAll *atomic.Int64
	asking      *lazyctx.Context // that of the host calls
}

// asking is a host call that is not answered yet.
type asking struct {
	ctx   *lazyctx.Context
	bytes int // that it passes
}

// frame is one that a process has sent, without the id of its call.
type frame struct {
	kind    byte
	content []byte
}

func newFlight(c scripting.Call, h scripting.Host, l *lane, passedByAll *atomic.Int64) (*flight, error) {
	if c.Journal == nil {
		c.Journal = scripting.NewJournal()
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	f := &flight{call: c, host: h, lane: l, passedByAll: passedByAll, asking: lazyctx.WithCancel(context.Background())}
	if c.Journal.Len() > 0 {
		journal, err := c.Journal.MarshalBinary()
		if err != nil {
			return nil, err
		}
		f.journal = journal
	}
	f.recorder = scripting.NewRecorder(c)
	f.call.Seed = f.recorder.Seed()
	return f, nil
}

// memory returns how much the process of the call may have, in bytes.
func (f *flight) memory(o Options) int64 {
	if m := f.call.Limits.Memory; m > 0 {
		return m
	}
	return o.Memory
}

// land ends a call: what it had asked of its host is cancelled and awaited, and
// its journal is whole.
func (f *flight) land() {
	f.asking.Cancel(nil)
	f.drop()
	for f.open > 0 {
		_ = f.settle(<-f.answers) // the call is over whatever its journal holds
	}
	f.passes(-f.passed) // of those that were dropped
	f.recorder.Journal()
	f.lane.end()
}

// fly runs the call in a process, to its end or that of the process, which is a
// [*deathError]. A call that is over does not wait for a process to end that was
// killed.
func (f *flight) fly(ctx context.Context, p *process, grace time.Duration) (scripting.Outcome, error) {
	f.frames, f.lease = make(chan frame, 1), 0
	if !p.board(f) {
		f.mourn(ctx, p)
		return scripting.Outcome{}, p.missed()
	}
	f.began = time.Now()
	f.busy(p)
	defer f.idle(p)
	if err := f.board(ctx, p); err != nil {
		p.kill(endUnknown)
		f.mourn(ctx, p)
		return scripting.Outcome{}, p.death()
	}
	// Who waits in the system keeps one of the scheduler's processors for a while.
	// What else is at hand goes first; the process may have answered by then.
	runtime.Gosched()
	p.readFor(f)
	for doomed := p.doomed; ; {
		select {
		case fr := <-f.frames:
			if out, ended, err := f.took(ctx, p, fr, grace); ended {
				return out, err
			}
		case a := <-f.answers:
			if failure := f.answered(p, a); failure != nil {
				f.dismiss(p, grace)
				return scripting.Outcome{Failure: failure}, nil
			}
		case <-doomed:
			if ctx.Err() != nil {
				return scripting.Outcome{}, p.death()
			}
			doomed = nil
		case <-p.dead:
			return f.remains(ctx, p)
		}
	}
}

// mourn waits until a process that was killed has ended, unless the call is over.
func (f *flight) mourn(ctx context.Context, p *process) {
	select {
	case <-p.dead:
	case <-p.doomed:
		if ctx.Err() == nil {
			<-p.dead
		}
	}
}

// took takes a frame in, and reports whether the call has ended by it.
func (f *flight) took(ctx context.Context, p *process, fr frame, grace time.Duration) (scripting.Outcome, bool, error) {
	f.quick = fr.kind == frameOutcome && f.answers == nil && time.Since(f.began) < soon
	out, ended, err := f.take(p, fr)
	if !ended && err == nil {
		return out, false, nil
	}
	if err == nil && fr.kind != frameOutcome {
		f.dismiss(p, grace)
	}
	out, err = f.judged(ctx, p, out, err)
	return out, true, err
}

// dismiss ends a call in its process that has failed on this side, and kills the
// process when it holds the call for longer than grace: no call runs on there of
// which nobody knows.
func (f *flight) dismiss(p *process, grace time.Duration) {
	f.drop()
	overdue := time.AfterFunc(grace, func() { p.kill(endOverdue) })
	defer overdue.Stop()
	p.cancel(f.id)
	for {
		select {
		case fr := <-f.frames:
			if fr.kind == frameOutcome {
				return
			}
		case a := <-f.answers:
			_ = f.answered(p, a) // the call has failed already
		case <-p.doomed:
			return
		}
	}
}

// board sends the call to the process, and its program if the process does not have it.
func (f *flight) board(ctx context.Context, p *process) error {
	p.teaching.Lock()
	defer p.teaching.Unlock()
	known, err := p.teach(f.call.Program, f.id)
	if err != nil {
		return err
	}
	c := callFrame{id: f.id, program: known, call: f.call, journal: f.journal}
	if at, ok := ctx.Deadline(); ok {
		c.left = max(time.Until(at), time.Nanosecond)
	}
	return p.wire.send(frameCall, c.append)
}

func (f *flight) busy(p *process) {
	if !f.counted {
		f.counted = true
		p.busy.Add(1)
	}
	f.since.Store(p.looks.Load())
}

func (f *flight) idle(p *process) {
	if f.counted {
		f.counted = false
		p.busy.Add(-1)
	}
}

// remains takes what a process had sent before it ended.
func (f *flight) remains(ctx context.Context, p *process) (scripting.Outcome, error) {
	for {
		select {
		case fr := <-f.frames:
			if out, ended, err := f.take(p, fr); ended || err != nil {
				return f.judged(ctx, p, out, err)
			}
		default:
			return scripting.Outcome{}, p.death()
		}
	}
}

// collect waits for what the call had asked in a process that has died, and has
// its next run go on from there.
func (f *flight) collect(ctx context.Context) (*scripting.Failure, error) {
	for f.open > 0 {
		select {
		case a := <-f.answers:
			if failure := f.settle(a); failure != nil {
				return failure, nil
			}
		case <-ctx.Done():
			return scripting.Over(ctx), nil
		}
	}
	journal := f.recorder.Journal()
	f.journal = nil
	if journal.Len() > 0 {
		text, err := journal.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("run a call again: %w", err)
		}
		f.journal = text
	}
	f.recorder.Rerun()
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
