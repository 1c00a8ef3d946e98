package scripting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Remote is a [Host] on the other side of a pipe, where the journal of the call
// is kept too. Do then waits for the answer to what Begin has sent.
type Remote interface {
	Host
	// Begin sends a host call, or a message that has no answer, and in front of
	// it what the journal has taken in since the last time (see
	// [Recorder.Follow]). It is called in the order of the run.
	Begin(seq int, op string, payload, tail []byte)
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
		a.data = r.rest
	case answerRefusal:
		a.refusal, ok = r.refusal()
	case answerPanic:
		a.panicked = true
	case answerLater:
		a.suspended = true
	default:
		ok = false
	}
	if !ok {
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

// Recorder keeps the journal of a call that runs in another process, and what
// that has not come to yet. It is not safe for concurrent use.
type Recorder struct {
	book  book
	given []answer
	last  int // the number of the last host call or message
}

// NewRecorder returns the recorder of a call. The journal takes in what the
// other process does from its end on; the seed is that of the call, and what
// [Recorder.Seed] returns is the one to run with.
func NewRecorder(j *Journal, limits Limits, seed uint64) *Recorder {
	r := &Recorder{book: newBook(j, limits.withDefaults())}
	j.seed = r.book.seed(seed)
	r.rewind()
	return r
}

// Seed returns the seed of the call.
func (r *Recorder) Seed() uint64 { return r.book.journal.seed }

// rewind takes the answers at the end of the journal as given.
func (r *Recorder) rewind() {
	for _, e := range r.book.arrived {
		r.given = append(r.given, e.given())
	}
	r.book.arrived = nil
	r.last = 0
	for i := range r.book.journal.entries {
		if e := &r.book.journal.entries[i]; e.kind == entryAsked || e.kind == entryTold {
			r.last = e.seq
		}
	}
}

// errOrder says that the other process does not keep to the order of a run.
var errOrder = errors.New("the run is out of order")

// Began takes in a host call or a message that the other process has sent. A
// failure ends the call.
func (r *Recorder) Began(seq int, op string, payload []byte) (*Failure, error) {
	if seq != r.last+1 || len(op) > maxOpName {
		return nil, fmt.Errorf("host call %d: %w", seq, errOrder)
	}
	r.last = seq
	kind := entryAsked
	if IsMessage(op) {
		kind = entryTold
	}
	return r.book.write(entryRecord{kind: kind, seq: seq, op: op, digest: digestOf(payload)}), nil
}

// Given takes in an answer that is sent to the other process.
func (r *Recorder) Given(a Answer) {
	if !a.suspended {
		r.given = append(r.given, a.answer)
	}
}

// Follow takes in the tail that a [Remote] was given in the other process. At its
// end a run may have given answers to itself, which count for nobody. A failure
// ends the call.
func (r *Recorder) Follow(tail []byte, end bool) (*Failure, error) {
	reader := journalReader{rest: tail}
	for len(reader.rest) > 0 {
		e, ok := r.next(&reader, end)
		if !ok {
			return nil, fmt.Errorf("a tail of %d bytes: %w", len(tail), errOrder)
		}
		if e == nil {
			continue
		}
		if failure := r.book.write(*e); failure != nil {
			return failure, nil
		}
	}
	return nil, nil
}

// next reads one entry; nil is one that counts for nobody.
func (r *Recorder) next(reader *journalReader, end bool) (*entryRecord, bool) {
	tag, ok := reader.number(tagClock)
	if !ok {
		return nil, false
	}
	switch tag {
	case tagAnswered:
		seq, ok := reader.number(math.MaxInt32)
		for i, a := range r.given {
			if ok && a.seq == seq {
				r.given = append(r.given[:i], r.given[i+1:]...)
				e := a.record()
				return &e, true
			}
		}
		return nil, ok && end
	case tagFired:
		seq, ok := reader.number(math.MaxInt32)
		return &entryRecord{kind: entryFired, seq: seq}, ok
	case tagClock:
		millis, n := binary.Varint(reader.rest)
		if n <= 0 {
			return nil, false
		}
		reader.rest = reader.rest[n:]
		reads, ok := reader.number(math.MaxInt32)
		return &entryRecord{kind: entryClock, millis: millis, reads: reads}, ok && reads > 0
	}
	return nil, false
}

// Journal returns the journal, for another run that goes on where the call is:
// the answers that its body did not come to are at its end. Every host call
// that has begun must have been answered.
func (r *Recorder) Journal() *Journal {
	j := r.book.journal
	for _, a := range r.given {
		j.add(a.record())
	}
	r.given = nil
	return j
}

// Rerun goes back to where [Recorder.Journal] was called: the run that was given
// the journal has the answers at its end still before it.
func (r *Recorder) Rerun() {
	r.book = newBook(r.book.journal, r.book.limits)
	r.rewind()
}
