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
	book book
	// given are the answers that the other process has not come to, by the
	// numbers of their host calls, and held is how many bytes they have.
	given map[int]answer
	held  int
	// later are the asks that the host answers in another run.
	later map[int]bool
	last  int // the number of the last host call or message
	// printed is how many bytes of what code prints there are.
	printed int
}

// NewRecorder returns the recorder of a call, which has a journal. That takes in
// what the other process does from its end on. What [Recorder.Seed] returns is the
// seed to run with.
func NewRecorder(c Call) *Recorder {
	j := c.Journal
	r := &Recorder{book: newBook(j, c.limits())}
	if c.Program != nil { // nil in tests of the recorder alone
		r.kind = c.Program.Kind()
	}
	j.seed = r.book.seed(c.Seed)
	r.rewind()
	for _, e := range j.entries {
		switch {
		case e.kind == entryAsked && e.op == OpAsk && !r.isGiven(e.seq):
			r.putOff(e.seq)
		case e.kind == entryAnswered:
			delete(r.later, e.seq)
		}
	}
	return r
}

// Seed returns the seed of the call.
func (r *Recorder) Seed() Seed { return r.book.journal.seed }

// Stdout returns what the code of the call has printed so far.
func (r *Recorder) Stdout() string { return r.book.stdout() }

func (r *Recorder) isGiven(seq int) bool {
	_, given := r.given[seq]
	return given
}

// rewind takes the answers at the end of the journal as given.
func (r *Recorder) rewind() {
	for _, e := range r.book.arrived {
		r.hold(e.given())
	}
	r.book.arrived = nil
	r.last, r.printed = 0, len(r.book.journal.Stdout())
	for i := range r.book.journal.entries {
		if e := &r.book.journal.entries[i]; e.kind == entryAsked || e.kind == entryTold {
			r.last = e.seq
		}
	}
}

// hold keeps an answer until the other process comes to it.
func (r *Recorder) hold(a answer) {
	if r.given == nil {
		r.given = map[int]answer{}
	}
	e := a.record()
	r.given[a.seq] = a
	r.held += e.size()
}

func (r *Recorder) putOff(seq int) {
	if r.later == nil {
		r.later = map[int]bool{}
	}
	r.later[seq] = true
}

// release takes out an answer that the other process has come to.
func (r *Recorder) release(seq int) (e entryRecord, ok bool) {
	a, ok := r.given[seq]
	if !ok {
		return e, false
	}
	e = a.record()
	delete(r.given, seq)
	r.held -= e.size()
	return e, true
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
	e := entryRecord{kind: entryAsked, seq: seq, op: op, digest: digestOf(payload), answer: toolCalled(r.kind, op, payload)}
	if IsMessage(op) {
		e.kind, e.answer = entryTold, r.kept(op, payload)
	}
	return r.book.write(e), nil
}

// kept returns what the journal keeps of a message: what code prints by it, as
// long as there is room for that.
func (r *Recorder) kept(op string, payload []byte) []byte {
	most := r.book.limits.Stdout
	if op != OpConsole || most == 0 || len(payload) > maxPrinted {
		return nil
	}
	var p printed
	if json.Unmarshal(payload, &p) != nil {
		return nil // the other process is ended for it
	}
	line := p.Message + "\n"
	if r.printed += len(line); r.printed > most+len(cutMark(most)) {
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
func (r *Recorder) Given(a Answer) *Failure {
	if a.suspended {
		r.putOff(a.seq)
		return nil
	}
	r.hold(a.answer)
	if most := r.book.limits.JournalBytes; r.held > most-r.book.journal.bytes {
		return limitFailure("journal_bytes", "the answers to the body's host calls have more than "+strconv.Itoa(most)+" bytes")
	}
	return nil
}

// around is what a lone content block has around it, which does not count.
const around = len("[]")

// Ended checks that an outcome which the other process sends is one that the
// call may have: a result within its bounds, or asks that its
// host has put off.
func (r *Recorder) Ended(out Outcome) error {
	most := r.book.limits.Output
	if result := out.Result; result != nil && (len(result.JSON) > most || len(result.Content) > most+around) {
		return fmt.Errorf("a result of %d and %d bytes: %w", len(result.JSON), len(result.Content), errOrder)
	}
	return r.suspended(out.Suspended)
}

// suspended checks that asks are open, are as they were asked, and wait by the
// word of the host, which alone knows what may be asked.
func (r *Recorder) suspended(asks []Ask) error {
	if len(asks) == 0 {
		return nil
	}
	asked := map[int][16]byte{}
	for i := range r.book.journal.entries {
		if e := &r.book.journal.entries[i]; e.kind == entryAsked && r.later[e.seq] {
			asked[e.seq] = e.digest
		}
	}
	last := 0
	for _, ask := range asks {
		if digest, open := asked[ask.Seq]; !open || digest != digestOf(ask.Payload) || ask.Seq <= last {
			return fmt.Errorf("the suspended host call %d: %w", ask.Seq, errOrder)
		}
		last = ask.Seq
	}
	return nil
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
		if e, given := r.release(seq); given {
			return &e, ok
		}
		return nil, ok && end
	case tagFired:
		seq, ok := reader.number(math.MaxInt32)
		return &entryRecord{kind: entryFired, seq: seq}, ok && seq > 0
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
	for _, seq := range slices.Sorted(maps.Keys(r.given)) {
		e, _ := r.release(seq)
		j.add(e)
	}
	return j
}

// Rerun goes back to where [Recorder.Journal] was called: the run that was given
// the journal has the answers at its end still before it.
func (r *Recorder) Rerun() {
	r.book = newBook(r.book.journal, r.book.limits)
	r.rewind()
}
