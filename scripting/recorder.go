package scripting

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Recorder keeps the journal of a call that runs in another process, and what
// that has not come to yet. It believes the other process nothing that could
// change what another call does. It is not safe for concurrent use.
type Recorder struct {
	kind Kind // of the program
	book journalCursor
	// given are the answers that the other process has not come to, by the
	// numbers of their host calls, and held is how many bytes they have.
	buffered      map[int]hostResponse
	bufferedBytes int
	// later are the asks that the host answers in another run.
	deferred map[int]bool
	last     int // the number of the last host call or message
	// printed is how many bytes of what code prints there are.
	printed int
}

// NewRecorder returns the recorder of a call, which has a journal. That takes in
// what the other process does from its end on. What [Recorder.Seed] returns is the
// seed to run with.
func NewRecorder(c Call) *Recorder {
	j := c.Journal
	r := &Recorder{book: newCursor(j, c.limits())}
	if c.Program != nil { // nil in tests of the recorder alone
		r.kind = c.Program.Kind()
	}
	j.seed = r.book.seed(c.Seed)
	r.rewind()
	for _, e := range j.entries {
		switch {
		case e.kind == entryCall && e.op == OpAsk && !r.isBuffered(e.seq):
			r.deferRequest(e.seq)
		case e.kind == entryResponse:
			delete(r.deferred, e.seq)
		}
	}
	return r
}

// Seed returns the seed of the call.
func (r *Recorder) Seed() Seed { return r.book.journal.seed }

// Stdout returns what the code of the call has printed so far.
func (r *Recorder) Stdout() string { return r.book.stdout() }

func (r *Recorder) isBuffered(seq int) bool {
	_, given := r.buffered[seq]
	return given
}

// rewind takes the answers at the end of the journal as given.
func (r *Recorder) rewind() {
	for _, e := range r.book.buffered {
		r.buffer(e.response())
	}
	r.book.buffered = nil
	r.last, r.printed = 0, len(r.book.journal.Stdout())
	for i := range r.book.journal.entries {
		if e := &r.book.journal.entries[i]; e.kind == entryCall || e.kind == entryNotification {
			r.last = e.seq
		}
	}
}

// hold keeps an answer until the other process comes to it.
func (r *Recorder) buffer(a hostResponse) {
	if r.buffered == nil {
		r.buffered = map[int]hostResponse{}
	}
	e := a.toEntry()
	r.buffered[a.seq] = a
	r.bufferedBytes += e.size()
}

func (r *Recorder) deferRequest(seq int) {
	if r.deferred == nil {
		r.deferred = map[int]bool{}
	}
	r.deferred[seq] = true
}

// release takes out an answer that the other process has come to.
func (r *Recorder) takeBuffered(seq int) (e journalEntry, ok bool) {
	a, ok := r.buffered[seq]
	if !ok {
		return e, false
	}
	e = a.toEntry()
	delete(r.buffered, seq)
	r.bufferedBytes -= e.size()
	return e, true
}

// errOrder says that the other process does not keep to the order of a run.
var errOutOfOrder = errors.New("the run is out of order")

// Began takes in a host call or a message that the other process has sent. A
// failure ends the call.
func (r *Recorder) RecordCall(seq int, op string, payload []byte) (*Failure, error) {
	if seq != r.last+1 || len(op) > maxOpName {
		return nil, fmt.Errorf("host call %d: %w", seq, errOutOfOrder)
	}
	r.last = seq
	e := journalEntry{kind: entryCall, seq: seq, op: op, digest: digestOf(payload), answer: calledTool(r.kind, op, payload)}
	if IsNotification(op) {
		e.kind, e.answer = entryNotification, r.printedLine(op, payload)
	}
	return r.book.write(e), nil
}

// kept returns what the journal keeps of a message: what code prints by it, as
// long as there is room for that.
func (r *Recorder) printedLine(op string, payload []byte) []byte {
	most := r.book.limits.Stdout
	if op != OpConsole || most == 0 || len(payload) > maxPrinted {
		return nil
	}
	var p printed
	if json.Unmarshal(payload, &p) != nil {
		return nil // the other process is ended for it
	}
	line := p.Message + "\n"
	if r.printed += len(line); r.printed > most+len(truncationMark(most)) {
		return nil
	}
	return []byte(line)
}

// maxPrinted bounds the payload of one line that code prints: each byte of it may
// be written as an escape of six.
const maxPrinted = 6*maxLogMessage + 1<<10

// Given takes in an answer that is sent to the other process. A failure ends the
// call: whether that process ever comes to its answers is for it to say, and
// they are held until then.
func (r *Recorder) RecordResponse(a HostResponse) *Failure {
	if a.suspended {
		r.deferRequest(a.seq)
		return nil
	}
	r.buffer(a.hostResponse)
	if most := r.book.limits.JournalBytes; r.bufferedBytes > most-r.book.journal.bytes {
		return limitFailure("journal_bytes", "the answers to the body's host calls have more than "+strconv.Itoa(most)+" bytes")
	}
	return nil
}

// around is what a lone content block has around it, which does not count.
const around = len("[]")

// Ended checks that an outcome which the other process sends is one that the
// call may have: a result within its bounds, or asks that its
// host has put off.
func (r *Recorder) CheckOutcome(out Outcome) error {
	most := r.book.limits.Output
	if result := out.Result; result != nil && (len(result.JSON) > most || len(result.Content) > most+around) {
		return fmt.Errorf("a result of %d and %d bytes: %w", len(result.JSON), len(result.Content), errOutOfOrder)
	}
	return r.checkSuspended(out.Suspended)
}

// suspended checks that asks are open, are as they were asked, and wait by the
// word of the host, which alone knows what may be asked.
func (r *Recorder) checkSuspended(asks []Ask) error {
	if len(asks) == 0 {
		return nil
	}
	asked := map[int][16]byte{}
	for i := range r.book.journal.entries {
		if e := &r.book.journal.entries[i]; e.kind == entryCall && r.deferred[e.seq] {
			asked[e.seq] = e.digest
		}
	}
	last := 0
	for _, ask := range asks {
		if digest, open := asked[ask.Seq]; !open || digest != digestOf(ask.Payload) || ask.Seq <= last {
			return fmt.Errorf("the suspended host call %d: %w", ask.Seq, errOutOfOrder)
		}
		last = ask.Seq
	}
	return nil
}

// Follow takes in the tail that a [Remote] was given in the other process. At its
// end a run may have given answers to itself, which count for nobody. A failure
// ends the call.
func (r *Recorder) ApplyTail(tail []byte, end bool) (*Failure, error) {
	reader := journalReader{rest: tail}
	for len(reader.rest) > 0 {
		e, ok := r.nextEntry(&reader, end)
		if !ok {
			return nil, fmt.Errorf("a tail of %d bytes: %w", len(tail), errOutOfOrder)
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
func (r *Recorder) nextEntry(reader *journalReader, end bool) (*journalEntry, bool) {
	tag, ok := reader.number(tagClock)
	if !ok {
		return nil, false
	}
	switch tag {
	case tagAnswered:
		seq, ok := reader.number(math.MaxInt32)
		if e, given := r.takeBuffered(seq); given {
			return &e, ok
		}
		return nil, ok && end
	case tagFired:
		seq, ok := reader.number(math.MaxInt32)
		return &journalEntry{kind: entryTimer, seq: seq}, ok && seq > 0
	case tagClock:
		millis, n := binary.Varint(reader.rest)
		if n <= 0 {
			return nil, false
		}
		reader.rest = reader.rest[n:]
		reads, ok := reader.number(math.MaxInt32)
		return &journalEntry{kind: entryClock, millis: millis, reads: reads}, ok && reads > 0
	}
	return nil, false
}

// Journal returns the journal, for another run that goes on where the call is:
// the answers that its body did not come to are at its end. Every host call
// that has begun must have been answered.
func (r *Recorder) Journal() *Journal {
	j := r.book.journal
	for _, seq := range slices.Sorted(maps.Keys(r.buffered)) {
		e, _ := r.takeBuffered(seq)
		j.add(e)
	}
	return j
}

// Rerun goes back to where [Recorder.Journal] was called: the run that was given
// the journal has the answers at its end still before it.
func (r *Recorder) Rewind() {
	r.book = newCursor(r.book.journal, r.book.limits)
	r.rewind()
}
