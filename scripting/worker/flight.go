package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/jsongate"
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
	frames chan frame    // from the process that the call is in
	over   chan struct{} // closed when the call is not in it any more

	answers chan scripting.Answer
	open    int // host calls that are not answered yet
	asking  context.Context
	stop    context.CancelFunc
}

// frame is one that a process has sent, without the id of its call.
type frame struct {
	kind    byte
	content []byte
}

func newFlight(c scripting.Call, h scripting.Host) (*flight, error) {
	if c.Journal == nil {
		c.Journal = scripting.NewJournal()
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	f := &flight{call: c, host: h, answers: make(chan scripting.Answer)}
	if c.Journal.Len() > 0 {
		journal, err := c.Journal.MarshalBinary()
		if err != nil {
			return nil, err
		}
		f.journal = journal
	}
	f.recorder = scripting.NewRecorder(c.Journal, c.Limits, c.Seed)
	f.call.Seed = f.recorder.Seed()
	f.asking, f.stop = context.WithCancel(context.Background())
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
	f.stop()
	for ; f.open > 0; f.open-- {
		f.recorder.Given(<-f.answers)
	}
	f.recorder.Journal()
}

// fly runs the call in a process, to its end or that of the process, which is a
// [*deathError].
func (f *flight) fly(ctx context.Context, p *peer, grace time.Duration) (scripting.Outcome, error) {
	f.frames, f.over = make(chan frame, 8), make(chan struct{})
	p.board(f)
	defer p.leave(f)
	defer close(f.over)
	defer f.guard(ctx, p, grace)()
	p.busy.Add(1)
	defer f.idle(p)
	if err := f.board(ctx, p); err != nil {
		p.end(endUnknown)
		<-p.dead
		return scripting.Outcome{}, p.death()
	}
	done := ctx.Done()
	for {
		select {
		case fr := <-f.frames:
			if out, ended, err := f.take(p, fr); ended || err != nil {
				return f.judged(ctx, p, out, err)
			}
		case a := <-f.answers:
			f.answered(p, a)
		case <-done:
			done = nil
			// When this fails the process has ended, or is about to.
			_ = p.wire.send(frameCancel, func(dst []byte) []byte { return append(dst, uvarint(f.id)...) })
		case <-p.dead:
			return f.remains(ctx, p)
		}
	}
}

// guard kills the process when it holds the call for longer than grace past its
// end, until stop is called.
func (f *flight) guard(ctx context.Context, p *peer, grace time.Duration) (stop func()) {
	over := f.over
	cancel := context.AfterFunc(ctx, func() {
		patience := time.NewTimer(grace)
		defer patience.Stop()
		select {
		case <-patience.C:
			p.end(endOverdue)
		case <-over:
		}
	})
	return func() { cancel() }
}

// board sends the call to the process.
func (f *flight) board(ctx context.Context, p *peer) error {
	if err := p.teach(f.call.Program); err != nil {
		return err
	}
	c := callFrame{id: f.id, program: f.call.Program.Hash(), call: f.call, journal: f.journal}
	if at, ok := ctx.Deadline(); ok {
		c.left = max(time.Until(at), time.Nanosecond)
	}
	return p.wire.send(frameCall, c.append)
}

// idle takes the call out of those that compute.
func (f *flight) idle(p *peer) {
	if f.open == 0 {
		p.busy.Add(-1)
	}
}

// remains takes what a process had sent before it ended.
func (f *flight) remains(ctx context.Context, p *peer) (scripting.Outcome, error) {
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

// take takes a frame from the process in; ended says that it was the last. An
// error is the process's.
func (f *flight) take(p *peer, fr frame) (out scripting.Outcome, ended bool, err error) {
	if fr.kind == frameOutcome {
		out, err = f.ended(fr.content)
		return out, true, err
	}
	h, err := readHost(fr.content)
	if err != nil {
		return out, false, err
	}
	failure, err := f.recorder.Follow(h.tail, false)
	if failure == nil && err == nil {
		failure, err = f.recorder.Began(h.seq, h.op, h.payload)
	}
	if err == nil {
		err = gated(h.payload)
	}
	switch {
	case failure != nil:
		return scripting.Outcome{Failure: failure}, true, nil
	case err != nil:
		return out, false, err
	case scripting.IsMessage(h.op):
		if scripting.AskHost(f.asking, f.host, h.seq, h.op, h.payload).Panicked() {
			return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.HostPanic, Message: "the host failed at " + h.op}}, true, nil
		}
		return out, false, nil
	}
	if f.open++; f.open == 1 {
		p.busy.Add(-1)
	}
	go func() { f.answers <- scripting.AskHost(f.asking, f.host, h.seq, h.op, h.payload) }()
	return out, false, nil
}

// answered passes an answer on to the process.
func (f *flight) answered(p *peer, a scripting.Answer) {
	if f.open--; f.open == 0 {
		p.busy.Add(1)
	}
	f.recorder.Given(a)
	// When this fails the process has ended, and the call goes on elsewhere.
	_ = p.wire.send(frameAnswer, func(dst []byte) []byte { return a.Append(append(dst, uvarint(f.id)...)) })
}

// ended reads the outcome of the call.
func (f *flight) ended(content []byte) (out scripting.Outcome, err error) {
	o, err := readOutcome(content)
	if err != nil {
		return out, err
	}
	failure, err := f.recorder.Follow(o.tail, true)
	switch {
	case err != nil:
		return out, err
	case failure != nil:
		return scripting.Outcome{Failure: failure}, nil
	case o.fault != "":
		return out, &faultError{o.fault}
	}
	if err := out.UnmarshalBinary(o.outcome); err != nil {
		return scripting.Outcome{}, err
	}
	return out, sound(out)
}

// faultError is a failure of the executor in the process.
type faultError struct{ text string }

// Error returns what the process says.
func (e *faultError) Error() string { return e.text }

// judged returns an outcome, or ends a process that did not keep to the protocol.
func (f *flight) judged(ctx context.Context, p *peer, out scripting.Outcome, err error) (scripting.Outcome, error) {
	var fault *faultError
	switch {
	case errors.As(err, &fault):
		return scripting.Outcome{}, err
	case err != nil:
		p.end(endProtocol)
		<-p.dead
		return scripting.Outcome{}, p.death()
	}
	if failure := out.Failure; failure != nil && (failure.Kind == scripting.Timeout || failure.Kind == scripting.Canceled) {
		if over := scripting.Over(ctx); over != nil {
			over.Stack = failure.Stack
			out.Failure = over
		}
	}
	return out, nil
}

// collect waits for what the call had asked in a process that has died, and has
// its next run go on from there.
func (f *flight) collect(ctx context.Context) (*scripting.Failure, error) {
	for f.open > 0 {
		select {
		case a := <-f.answers:
			f.open--
			f.recorder.Given(a)
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

// bounds are those of JSON from a process.
func bounds() jsongate.Limits {
	return jsongate.Limits{Bytes: maxAnswer, Depth: 72, Tokens: 1_000_000, Halves: true}
}

// gated lets JSON from a process through the gate.
func gated(text []byte) error {
	if err := jsongate.Check(text, bounds()); err != nil {
		return fmt.Errorf("a process sends what is no JSON: %w", err)
	}
	return nil
}

// sound reports whether what ought to be JSON in an outcome is.
func sound(out scripting.Outcome) error {
	var texts [][]byte
	if r := out.Result; r != nil {
		texts = append(texts, r.JSON, r.Content)
	}
	if f := out.Failure; f != nil {
		texts = append(texts, f.Details)
	}
	for _, ask := range out.Suspended {
		texts = append(texts, ask.Payload)
	}
	for _, text := range texts {
		if len(text) > 0 {
			if err := gated(text); err != nil {
				return err
			}
		}
	}
	return nil
}
