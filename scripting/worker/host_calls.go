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
	maxMessage = 1 << 20
	// maxPassed bounds what the host calls of a call pass that wait for their
	// answers: the process that they come from has them behind it.
	maxPassed = 64 << 20
	// maxPassedByAll bounds what those of all calls pass, in the same way: the calls
	// that pass more than fairPassed are ended which would make it more.
	maxPassedByAll = 128 << 20
	fairPassed     = 256 << 10
	// maxAsked is how many host calls of a call run at once. Others wait.
	maxAsked = 64
)

// take takes a frame from the process in; ended says that it was the last. An
// error is the process's.
func (x *execution) take(p *process, fr frame) (out scripting.Outcome, ended bool, err error) {
	switch fr.kind {
	case frameOutcome:
		out, err = x.ended(fr.content)
		return out, true, err
	case frameDrop:
		failure, err := x.dropped(fr.content)
		return scripting.Outcome{Failure: failure}, failure != nil, err
	}
	h, err := readHost(fr.content)
	if err != nil {
		return out, false, err
	}
	failure, err := x.recorder.Follow(h.tail, false)
	if failure == nil && err == nil {
		failure, err = x.recorder.Began(h.seq, h.op, h.payload)
	}
	if err == nil {
		err = gated(h.payload)
	}
	message := scripting.IsMessage(h.op)
	switch {
	case err != nil:
		return out, false, err
	case failure != nil:
		return scripting.Outcome{Failure: failure}, true, nil
	case message && len(h.payload) > maxMessage:
		return out, false, errWire
	case message:
		if scripting.AskHost(x.asking, x.host, h.seq, h.op, h.payload).Panicked() {
			return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.HostPanic, Message: "the host failed at " + h.op}}, true, nil
		}
		return out, false, nil
	case x.passed+len(h.payload) > maxPassed:
		return scripting.Outcome{Failure: tooMuchPassed("the body", maxPassed)}, true, nil
	case x.passed+len(h.payload) > fairPassed && x.passedByAll.Load()+int64(len(h.payload)) > maxPassedByAll:
		return scripting.Outcome{Failure: tooMuchPassed("all bodies", maxPassedByAll)}, true, nil
	}
	x.ask(p, h)
	return out, false, nil
}

// ask asks the host, in its turn. The answer comes over answers.
func (x *execution) ask(p *process, h hostFrame) {
	if x.open++; x.open == 1 {
		x.idle(p)
		x.since.Store(0)
		x.lane.leave()
	}
	if x.answers == nil {
		x.answers, x.asked = make(chan scripting.Answer), map[int]asking{}
	}
	x.asked[h.seq] = asking{lazyctx.WithCancel(x.asking), len(h.payload)}
	x.passes(len(h.payload))
	x.queue = append(x.queue, h)
	x.askNext()
}

// askNext asks the host as long as not too much is asked at once, and the call is
// not over.
func (x *execution) askNext() {
	for x.open-len(x.queue) < maxAsked && len(x.queue) > 0 && x.guard.ctx.Err() == nil {
		h := x.queue[0]
		x.queue = x.queue[1:]
		ctx, host := x.asked[h.seq].ctx, scripting.Host(gatedHost{x.host})
		if ctx.Err() != nil {
			host = nobody{}
		}
		go func() { x.answers <- scripting.AskHost(ctx, host, h.seq, h.op, h.payload) }()
	}
}

// nobody is asked what was dropped before its turn.
type nobody struct{}

// Do returns why nobody is asked.
func (nobody) Do(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
	return nil, ctx.Err()
}

// dropped cancels a host call that the process says nobody waits for any more. It
// may have been answered meanwhile. A failure ends the call.
func (x *execution) dropped(content []byte) (*scripting.Failure, error) {
	r := reader{rest: content}
	seq := r.number()
	if r.bad || seq > 1<<31 {
		return nil, errWire
	}
	// A run that is begun anew is to know why, before it knows how the call ended.
	if failure, err := x.recorder.Follow(r.rest, false); failure != nil || err != nil {
		return failure, err
	}
	if a, open := x.asked[int(seq)]; open {
		a.ctx.Cancel(nil)
	}
	return nil, nil
}

func (x *execution) drop() {
	dropped := len(x.queue)
	x.queue = nil
	if x.open -= dropped; x.open == 0 && dropped > 0 {
		x.lane.resume()
	}
}

// settle takes in an answer. A failure ends the call.
func (x *execution) settle(a scripting.Answer) *scripting.Failure {
	if x.open--; x.open == 0 {
		x.lane.resume()
	}
	asked := x.asked[a.Seq()]
	asked.ctx.Cancel(nil)
	x.passes(-asked.bytes)
	delete(x.asked, a.Seq())
	x.askNext()
	return x.recorder.Given(a)
}

// passes counts bytes that a host call passes, or that are let go of.
func (x *execution) passes(bytes int) {
	x.passed += bytes
	x.passedByAll.Add(int64(bytes))
}

func tooMuchPassed(who string, most int) *scripting.Failure {
	return &scripting.Failure{
		Kind: scripting.Limit, Limit: "host_calls",
		Message: fmt.Sprintf("the host calls of %s that wait for their answers pass more than %d MiB together", who, most>>20),
	}
}

// answered passes an answer on to the process. A failure ends the call.
func (x *execution) answered(p *process, a scripting.Answer) *scripting.Failure {
	failure := x.settle(a)
	if x.open == 0 {
		x.busy(p)
	}
	if failure == nil {
		// When this fails the process has ended, and the call goes on elsewhere.
		_ = p.wire.send(frameAnswer, func(dst []byte) []byte { return a.Append(append(dst, uvarint(x.id)...)) })
	}
	return failure
}

// bounds are those of JSON from a process. There are as many tokens as fit: what
// a body makes is bounded in bytes alone.
func bounds() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxAnswer, Depth: 72, Tokens: maxAnswer, Halves: true}
}

// gated lets JSON from a process through the gate.
func gated(text []byte) error {
	if err := jsonguard.Check(text, bounds()); err != nil {
		return fmt.Errorf("a process sends what is no JSON: %w", err)
	}
	return nil
}

// answerLimits are those of JSON that goes to a process. How large it may be, the
// grants say.
func answerLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxPassedByAll, Depth: 600, Tokens: maxPassedByAll, Halves: true}
}

// gatedHost lets the answers of a host through the gate, before a process decodes them.
type gatedHost struct{ scripting.Host }

// Do refuses an answer that is no JSON.
func (g gatedHost) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	data, err := g.Host.Do(ctx, seq, op, payload)
	if err != nil || len(data) == 0 {
		return data, err
	}
	if err := jsonguard.Check(data, answerLimits()); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the answer is no JSON that a script can have: " + err.Error()}
	}
	return data, nil
}
