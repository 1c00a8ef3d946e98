package scripting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Host does for a script what the script may not do itself. Only bytes cross:
// op names the operation, payload and answer are JSON (see the package
// documentation for the operations). seq counts the operations of one call
// from 1, in the order in which the script asked for them.
//
// Do is called from several goroutines at once. It must return soon after ctx
// is done; a Run does not return before every Do that it started has. A
// refusal that the script should see is a [*HostError]; any other error is
// shown to the script as UNAVAILABLE, without its text. The answer to an ask
// may come later: see [ErrSuspended].
type Host interface {
	Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error)
}

// ErrSuspended is how [Host.Do] says of the operation ask, and of no other,
// that the answer comes in another run of the call. The run goes on with
// everything else, and ends with an [Outcome] that is suspended.
var ErrSuspended = errors.New("the answer comes in another run of the call")

// The codes of a [HostError]. Of the operation call there are the codes by which
// calls fail, too.
const (
	NotFound    = "NOT_FOUND"
	OutsideRoot = "OUTSIDE_ROOT"
	NotGranted  = "NOT_GRANTED"
	TooLarge    = "TOO_LARGE"
	Denied      = "DENIED"
	TimedOut    = "TIMEOUT"
	Unavailable = "UNAVAILABLE"
	Invalid     = "INVALID"
	// Capability refuses an ask that no client of the call can answer. The
	// script sees it as a CapabilityError.
	Capability = "CAPABILITY"
	// Consent refuses a request that a user must allow first. With details the
	// run asks the user, and sends the request again once they have accepted; it is
	// never shown to a script, and neither is what they answered.
	Consent = "CONSENT"
	// Asks answers the operation call, of code alone, of a tool that waits for the client.
	// Its details are {"requests", "state"}: the run asks the requests, as those of the
	// operation ask, and goes on with the call by the operation resume. It is
	// never shown to a script.
	Asks = "ASKS"
)

// HostError is a refusal by a [Host]. The script sees it as a HostError with
// the same code and message, so Message repeats only what the script passed.
type HostError struct {
	Code, Message string
	// Details is JSON. Of the code [Capability] it is {"requiredCapabilities": {…}},
	// as MCP names what a client lacks, and of the code [Consent] what the user is
	// asked: the params of an elicitation/create of MCP. Of [Asks] see there. Others have none.
	Details []byte
}

// Error returns the code and the message.
func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// HostErrorCodes returns all codes that a [HostError] may have.
func HostErrorCodes() []string {
	return []string{NotFound, OutsideRoot, NotGranted, TooLarge, Denied, TimedOut, Unavailable, Invalid, Capability, Consent, Asks}
}

// maxPayload is the most bytes of JSON that a body can pass to a [Host] at once.
// More is refused as [TooLarge] before the host hears of it, and leaves nothing
// in the journal.
const maxPayload = 23 << 20

func tooLarge() *HostError {
	return &HostError{Code: TooLarge, Message: fmt.Sprintf("what is passed is more than %d MiB as JSON", maxPayload>>20)}
}

// Remote is a [Host] on the other side of a pipe, where the journal of the call
// is kept too. Do then waits for the answer to what Begin has sent.
type Remote interface {
	Host
	// Begin sends a host call, or a message that has no answer, and in front of
	// it what the journal has taken in since the last time (see
	// [Recorder.Follow]). It is called in the order of the run.
	Begin(seq int, op string, payload, tail []byte)
	// Drop says that nobody waits for a host call any more that has begun, with the
	// tail as in Begin: it is to be cancelled. Do waits on, for however it ends.
	Drop(seq int, tail []byte)
	// End is called at the end of the run, when all that it started has ended.
	End(tail []byte)
}

// IsMessage reports whether op is a message: the body does not wait for an answer.
func IsMessage(op string) bool {
	switch op {
	case "log", "console", "progress", "disconnect":
		return true
	}
	return false
}

// Answer is how a host call ended: with data, with a refusal, with a panic, or
// not yet.
type Answer struct{ answer }

// AskHost asks a host. A panic becomes an answer too.
func AskHost(ctx context.Context, h Host, seq int, op string, payload []byte) Answer {
	return Answer{do(ctx, h, seq, op, payload)}
}

// Seq returns the number of the host call.
func (a Answer) Seq() int { return a.seq }

// Panicked reports whether the host has panicked.
func (a Answer) Panicked() bool { return a.panicked }

// Result returns what [Host.Do] returns for the answer.
func (a Answer) Result() ([]byte, error) {
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
func (a Answer) Append(dst []byte) []byte {
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
func ReadAnswer(data []byte) (seq int, a Answer, err error) {
	r := journalReader{rest: data}
	seq, ok := r.number(math.MaxInt32)
	if !ok || len(r.rest) == 0 {
		return 0, Answer{}, errAnswer
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
		return 0, Answer{}, errAnswer
	}
	return seq, a, nil
}

// tail returns what the journal has taken in since the last time, but for the
// host calls and messages themselves and for the data of answers.
func (b *book) tail() []byte {
	if b.journal == nil {
		return nil
	}
	var w journalWriter
	for ; b.passed < len(b.journal.entries); b.passed++ {
		switch e := &b.journal.entries[b.passed]; e.kind {
		case entryAnswered:
			w.numbers(tagAnswered, e.seq)
		case entryFired:
			w.numbers(tagFired, e.seq)
		case entryClock:
			w.numbers(tagClock)
			w.out = binary.AppendVarint(w.out, e.millis)
			w.numbers(e.reads)
		}
	}
	return w.out
}
