package scripting

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
)

// What is in this file, and the [Recorder], is for executors that run a call in another process.
// Package worker is the only one.

// Remote is a [Host] on the other side of a pipe, where the journal of the call
// is kept too. Do then waits for the answer to what Begin has sent.
type Remote interface {
	Host
	// Begin sends a host call, or a message that has no answer, and in front of
	// it what the journal has taken in since the last time (see
	// [Recorder.Follow]). It is called in the order of the run.
	StartCall(seq int, op string, payload, tail []byte)
	// Drop says that nobody waits for a host call any more that has begun, with the
	// tail as in Begin: it is to be cancelled. Do waits on, for however it ends.
	CancelCall(seq int, tail []byte)
	// End is called at the end of the run, when all that it started has ended.
	Finish(tail []byte)
}

// Answer is how a host call ended: with data, with a refusal, with a panic, or
// not yet.
type HostResponse struct{ hostResponse }

// AskHost asks a host. A panic becomes an answer too.
func CallHost(ctx context.Context, h Host, seq int, op string, payload []byte) HostResponse {
	return HostResponse{callSafely(ctx, h, seq, op, payload)}
}

// Seq returns the number of the host call.
func (a HostResponse) Seq() int { return a.seq }

// Panicked reports whether the host has panicked.
func (a HostResponse) Panicked() bool { return a.panicked }

// Result returns what [Host.Do] returns for the answer.
func (a HostResponse) Result() ([]byte, error) {
	switch {
	case a.suspended:
		return nil, ErrSuspended
	case a.panicked:
		return nil, errPanicked
	case a.refusal != nil:
		return nil, a.refusal
	}
	return a.data, nil
}

// errPanicked is what a host on the other side of a pipe says of a panic there.
var errPanicked = errors.New("the host has panicked")

const (
	answerData = iota
	answerRefusal
	answerPanic
	answerLater
)

// Append appends the binary form of the answer.
func (a HostResponse) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.seq))
	switch {
	case a.suspended:
		return append(dst, answerLater)
	case a.panicked:
		return append(dst, answerPanic)
	case a.refusal != nil:
		w := journalWriter{out: append(dst, answerRefusal)}
		w.text(a.refusal.Code)
		w.text(a.refusal.Message)
		w.text(string(a.refusal.Details))
		return w.out
	}
	return append(append(dst, answerData), a.data...)
}

// errAnswer says that bytes are no answer. It repeats none of them.
var errAnswer = errors.New("not an answer")

// ReadAnswer reads what [Answer.Append] has made. The answer keeps data.
func DecodeHostResponse(data []byte) (seq int, a HostResponse, err error) {
	r := journalReader{rest: data}
	seq, ok := r.number(math.MaxInt32)
	if !ok || len(r.rest) == 0 {
		return 0, HostResponse{}, errAnswer
	}
	a.seq = seq
	kind := r.rest[0]
	r.rest = r.rest[1:]
	switch kind {
	case answerData:
		a.data, r.rest = r.rest, nil
	case answerRefusal:
		a.refusal, ok = r.refusal()
	case answerPanic:
		a.panicked = true
	case answerLater:
		a.suspended = true
	default:
		ok = false
	}
	if !ok || len(r.rest) > 0 {
		return 0, HostResponse{}, errAnswer
	}
	return seq, a, nil
}

// tail returns what the journal has taken in since the last time, but for the
// host calls and messages themselves and for the data of answers.
func (b *journalCursor) tail() []byte {
	if b.journal == nil {
		return nil
	}
	var w journalWriter
	for ; b.reported < len(b.journal.entries); b.reported++ {
		switch e := &b.journal.entries[b.reported]; e.kind {
		case entryResponse:
			w.numbers(tagAnswered, e.seq)
		case entryTimer:
			w.numbers(tagFired, e.seq)
		case entryClock:
			w.numbers(tagClock)
			w.out = binary.AppendVarint(w.out, e.millis)
			w.numbers(e.reads)
		}
	}
	return w.out
}
