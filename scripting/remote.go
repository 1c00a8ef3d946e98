package scripting

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
)

// This file and [Recorder] serve executors that run a call in another process, like package worker.

// Remote is a [Host] in another process, which keeps the journal of the call too. Do waits for the
// response to the call that StartCall has sent.
type Remote interface {
	Host
	// StartCall sends a host call, or a notification without a response. tail has the journal
	// entries since the last call (see [Recorder.ApplyTail]). It is called in the order of the run.
	StartCall(seq int, op string, payload, tail []byte)
	// CancelCall reports that the script no longer waits for a host call, with the tail as in
	// StartCall: the host cancels the call. Do still waits for its end.
	CancelCall(seq int, tail []byte)
	// Finish is called at the end of the run, when everything that it started has ended.
	Finish(tail []byte)
}

// HostResponse is the result of a host call: data, a refusal, a panic, or a suspension.
type HostResponse struct{ hostResponse }

// CallHost calls a host. A panic becomes a response too.
func CallHost(ctx context.Context, h Host, seq int, op string, payload []byte) HostResponse {
	return HostResponse{callSafely(ctx, h, seq, op, payload)}
}

// Seq returns the number of the host call.
func (a HostResponse) Seq() int { return a.seq }

// Panicked reports whether the host panicked.
func (a HostResponse) Panicked() bool { return a.panicked }

// Result returns the results of [Host.Do].
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

// errPanicked is the error of a remote host after a panic.
var errPanicked = errors.New("host panicked")

const (
	responseData = iota
	responseRefusal
	responsePanic
	responseDeferred
)

// Append appends the binary form of the response to dst.
func (a HostResponse) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.seq))
	switch {
	case a.suspended:
		return append(dst, responseDeferred)
	case a.panicked:
		return append(dst, responsePanic)
	case a.refusal != nil:
		w := journalWriter{out: append(dst, responseRefusal)}
		w.text(a.refusal.Code)
		w.text(a.refusal.Message)
		w.text(string(a.refusal.Details))
		return w.out
	}
	return append(append(dst, responseData), a.data...)
}

// errResponse is the error for bytes that are not a response. It repeats none of them.
var errResponse = errors.New("not a response")

// DecodeHostResponse decodes the output of [HostResponse.Append]. The response keeps data.
func DecodeHostResponse(data []byte) (seq int, a HostResponse, err error) {
	r := journalReader{rest: data}
	seq, ok := r.number(math.MaxInt32)
	if !ok || len(r.rest) == 0 {
		return 0, HostResponse{}, errResponse
	}
	a.seq = seq
	kind := r.rest[0]
	r.rest = r.rest[1:]
	switch kind {
	case responseData:
		a.data, r.rest = r.rest, nil
	case responseRefusal:
		a.refusal, ok = r.refusal()
	case responsePanic:
		a.panicked = true
	case responseDeferred:
		a.suspended = true
	default:
		ok = false
	}
	if !ok || len(r.rest) > 0 {
		return 0, HostResponse{}, errResponse
	}
	return seq, a, nil
}

// tail returns the journal entries since the last call, without host calls, notifications, and the
// data of responses.
func (b *journalCursor) tail() []byte {
	if b.journal == nil {
		return nil
	}
	var w journalWriter
	for ; b.reported < len(b.journal.entries); b.reported++ {
		switch e := &b.journal.entries[b.reported]; e.kind {
		case entryResponse:
			w.numbers(tagResponse, e.seq)
		case entryTimer:
			w.numbers(tagTimer, e.seq)
		case entryClock:
			w.numbers(tagClock)
			w.out = binary.AppendVarint(w.out, e.millis)
			w.numbers(e.reads)
		}
	}
	return w.out
}
