package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/base/watchdog"
	"github.com/mcpd/mcpd/scripting"
)

// server runs calls in this process for an [Executor] in the parent.
type server struct {
	wire       wire
	reader     readLoop
	inline     scripting.Executor
	transpiler scripting.Transpiler

	mu       sync.Mutex
	programs map[[32]byte]*loadedProgram
	calls    map[uint64]*activeCall
	running  sync.WaitGroup
	begun    atomic.Uint64 // the number of calls
	// compiling serializes the compilation of small programs, and of large ones: the syntax tree of
	// one large program may be as large as all the programs of the process.
	compiling [2]sync.Mutex
}

// smallProgram is the encoded size up to which a program need not wait for large ones.
const smallProgram = 16 << 10

// loadedProgram is a program that is compiled once, when it arrives.
type loadedProgram struct {
	ready   chan struct{}
	program *scripting.Program
	err     error
	oneShot bool
}

type activeCall struct {
	server *server
	id     uint64
	lease  uint64 // lease by which the goroutine reads, until it passes the lease
	ctx    *lazyctx.Context
	tail   []byte // last journal entries, set when the run has ended

	mu        sync.Mutex
	responses map[int]chan scripting.HostResponse
}

func newServer(out io.Writer, t scripting.Transpiler) *server {
	return &server{wire: wire{out: out}, inline: scripting.Inline(), transpiler: t, programs: map[[32]byte]*loadedProgram{}, calls: map[uint64]*activeCall{}}
}

// dispatch handles one frame under a lease. An error ends the process.
func (s *server) dispatch(turn uint64, kind byte, content []byte) error {
	switch kind {
	case frameProgram:
		return s.load(content, false)
	case frameOneShot:
		return s.load(content, true)
	case frameForget:
		return s.forget(content)
	case frameCall:
		return s.call(turn, content)
	case frameResponse:
		return s.handleResponse(content)
	case frameCancel:
		r := reader{rest: content}
		if c := s.find(r.number()); c != nil {
			c.ctx.Cancel(nil)
		}
		return nil
	}
	return errFrame
}

// load compiles a program, which may be for one call. Calls of the program wait.
func (s *server) load(content []byte, once bool) error {
	r := reader{rest: content}
	hash := r.array()
	if r.bad {
		return errWire
	}
	l := &loadedProgram{ready: make(chan struct{}), oneShot: once}
	s.mu.Lock()
	s.programs[hash] = l
	s.mu.Unlock()
	lane := &s.compiling[0]
	if len(r.rest) > smallProgram {
		lane = &s.compiling[1]
	}
	s.running.Go(func() {
		defer close(l.ready)
		lane.Lock()
		defer lane.Unlock()
		l.program, l.err = scripting.UnmarshalProgram(r.rest, s.transpiler)
	})
	return nil
}

// forget drops a program. Running calls continue.
func (s *server) forget(content []byte) error {
	r := reader{rest: content}
	hash := r.array()
	if r.bad || len(r.rest) > 0 {
		return errWire
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.programs, hash)
	return nil
}

func (s *server) call(turn uint64, content []byte) error {
	f, err := readCall(content)
	if err != nil {
		return err
	}
	ctx := lazyctx.WithCancel(context.Background())
	if f.remaining > 0 {
		ctx = lazyctx.WithTimeout(context.Background(), f.remaining)
	}
	defer ctx.Cancel(nil)
	c := &activeCall{server: s, id: f.id, lease: turn, ctx: ctx}
	s.mu.Lock()
	l := s.programs[f.program]
	if l != nil && l.oneShot {
		delete(s.programs, f.program)
	}
	s.calls[f.id] = c
	s.running.Add(1)
	s.mu.Unlock()
	s.begun.Add(1)
	defer s.running.Done()
	if l == nil {
		return fmt.Errorf("call of an unknown program: %w", errFrame)
	}
	s.reader.startCall(turn)
	defer s.reader.endCall(turn)
	c.run(ctx, l, &f)
	return nil
}

func (s *server) find(id uint64) *activeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// handleResponse passes a response to the call that waits for it, if the call has not ended.
func (s *server) handleResponse(content []byte) error {
	r := reader{rest: content}
	id := r.number()
	seq, answer, err := scripting.DecodeHostResponse(r.rest)
	if r.bad || err != nil {
		return errors.Join(errWire, err)
	}
	if c := s.find(id); c != nil {
		c.deliver(seq, answer)
	}
	return nil
}

func (c *activeCall) run(ctx context.Context, l *loadedProgram, f *callFrame) {
	select {
	case <-l.ready:
	default:
		c.server.reader.pass(c.lease)
		<-l.ready
	}
	var o outcomeFrame
	if l.err != nil {
		o.fault = l.err.Error()
	} else {
		o = c.outcome(ctx, l.program, f)
	}
	c.server.mu.Lock()
	delete(c.server.calls, c.id)
	c.server.mu.Unlock()
	// An error means that the parent has exited, and the process ends.
	_ = c.server.wire.send(frameOutcome, func(dst []byte) []byte { return o.append(binary.AppendUvarint(dst, c.id)) })
}

func (c *activeCall) outcome(ctx context.Context, program *scripting.Program, f *callFrame) (o outcomeFrame) {
	journal := scripting.NewJournal()
	if len(f.journal) > 0 {
		if err := journal.UnmarshalBinary(f.journal); err != nil {
			return outcomeFrame{fault: err.Error()}
		}
	}
	f.call.Program, f.call.Journal = program, journal
	out, err := c.server.inline.Run(ctx, f.call, c)
	if err == nil {
		o.outcome, err = out.AppendBinary(nil)
	}
	o.tail = c.tail
	if err != nil {
		o.fault = err.Error()
	}
	return o
}

// StartCall sends a host call or a notification.
func (c *activeCall) StartCall(seq int, op string, payload, tail []byte) {
	if !scripting.IsNotification(op) {
		c.mu.Lock()
		if c.responses == nil {
			c.responses = map[int]chan scripting.HostResponse{}
		}
		c.responses[seq] = make(chan scripting.HostResponse, 1)
		c.mu.Unlock()
	}
	f := hostFrame{seq, op, tail, payload}
	// An error means that the parent has exited, and the process ends.
	_ = c.server.wire.send(frameHostCall, func(dst []byte) []byte { return f.append(binary.AppendUvarint(dst, c.id)) })
}

// CancelCall informs the parent that the script no longer waits for a host call.
func (c *activeCall) CancelCall(seq int, tail []byte) {
	// An error means that the parent has exited, and the process ends.
	_ = c.server.wire.send(frameHostCancel, func(dst []byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(dst, c.id), uint64(seq)), tail...)
	})
}

// Finish stores the last entries of the journal.
func (c *activeCall) Finish(tail []byte) { c.tail = tail }

// Do waits for the response to a host call that has started.
func (c *activeCall) Do(ctx context.Context, seq int, _ string, _ []byte) ([]byte, error) {
	c.server.reader.pass(c.lease)
	c.mu.Lock()
	answer := c.responses[seq]
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.responses, seq)
	}()
	select {
	case a := <-answer:
		return a.Result()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *activeCall) deliver(seq int, a scripting.HostResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to := c.responses[seq]; to != nil && len(to) == 0 {
		to <- a
	}
}

// drain cancels all calls and waits for their end, at most timeout.
func (s *server) drain(timeout time.Duration) {
	s.mu.Lock()
	for _, c := range s.calls {
		c.ctx.Cancel(nil)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(timeout):
	}
}

// readLoop reads the frames of a process. The goroutine that reads runs calls itself. When a call
// waits for its host, or runs for two ticks, the lease passes to a new goroutine, so that frames
// are never delayed for long.
type readLoop struct {
	pipeReader
	watchdog watchdog.Watchdog // checks the goroutine with the lease

	mu       sync.Mutex
	running  uint64 // lease of the goroutine that runs a call
	lastSeen uint64 // value of running at the last tick
}

// readAll reads until the end of the stream or an invalid frame, and returns the error. Goroutines
// that have passed the lease may still run.
func (r *readLoop) readAll() error {
	ended := make(chan error, 1)
	r.failed = func(err error) { ended <- err }
	lease, _ := r.acquire()
	go r.read(lease)
	return <-ended
}

// startCall records that the goroutine with a lease runs a call.
func (r *readLoop) startCall(lease uint64) {
	r.mu.Lock()
	r.running, r.lastSeen = lease, 0
	r.mu.Unlock()
	r.watchdog.Watch(r)
}

// endCall records the end of its call.
func (r *readLoop) endCall(lease uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == lease {
		r.running = 0
	}
}

// Look passes the lease of a call that was running at the last tick too.
func (r *readLoop) Look() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != 0 && r.running == r.lastSeen {
		r.pass(r.running)
		r.running = 0
	}
	r.lastSeen = r.running
	return r.running != 0
}
