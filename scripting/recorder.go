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

// Recorder records the journal of a call in another process, and the responses that the process has
// not used yet. It does not trust the other process with anything that could affect other calls. It
// is not safe for concurrent use.
type Recorder struct {
	kind Kind // kind of the program
	book journalCursor
	// buffered has the responses that the other process has not used, by number of the host call.
	// bufferedBytes is their size.
	buffered      map[int]hostResponse
	bufferedBytes int
	// deferred has the asks with a response in a later run.
	deferred map[int]bool
	last     int // number of the last host call or notification
	// printed is the size of the output in bytes.
	printed int
}

// NewRecorder returns the recorder of a call with a journal. It appends the actions of the other
// process to the journal. The call must run with [Recorder.Seed].
func NewRecorder(c Call) *Recorder {
	j := c.Journal
	r := &Recorder{book: newCursor(j, c.limits())}
	if c.Program != nil { // nil in tests of the recorder
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

// Stdout returns the output of the code so far.
func (r *Recorder) Stdout() string { return r.book.stdout() }

func (r *Recorder) isBuffered(seq int) bool {
	_, given := r.buffered[seq]
	return given
}

// rewind buffers the responses at the end of the journal.
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

// buffer stores a response until the other process uses it.
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

// takeBuffered removes a response that the other process uses.
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

// errOutOfOrder is the error for a violation of the order of a run.
var errOutOfOrder = errors.New("run is out of order")

// RecordCall records a host call or a notification from the other process. A failure ends the call.
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

// printedLine returns the output in a notification, as long as it fits into the limit.
func (r *Recorder) printedLine(op string, payload []byte) []byte {
	limit := r.book.limits.Stdout
	if op != OpConsole || limit == 0 || len(payload) > maxPrinted {
		return nil
	}
	var p printed
	if json.Unmarshal(payload, &p) != nil {
		return nil // the process is killed for it
	}
	line := p.Message + "\n"
	if r.printed += len(line); r.printed > limit+len(truncationMark(limit)) {
		return nil
	}
	return []byte(line)
}

// maxPrinted limits the payload of one line of output: each byte may be an escape of six bytes.
const maxPrinted = 6*maxLogMessage + 1<<10

// RecordResponse records a response that is sent to the other process. A failure ends the call. The
// response is buffered until the other process reports its use, which it may never do.
func (r *Recorder) RecordResponse(a HostResponse) *Failure {
	if a.suspended {
		r.deferRequest(a.seq)
		return nil
	}
	r.buffer(a.hostResponse)
	if limit := r.book.limits.JournalBytes; r.bufferedBytes > limit-r.book.journal.bytes {
		return limitFailure("journal_bytes", "the responses to the host calls of the script exceed "+strconv.Itoa(limit)+" bytes")
	}
	return nil
}

// bracketBytes is the size of the brackets around a single content block, which do not count.
const bracketBytes = len("[]")

// CheckOutcome checks that the call may have the outcome from the other process: a result within
// the limits, or asks that the host has deferred.
func (r *Recorder) CheckOutcome(out Outcome) error {
	limit := r.book.limits.Output
	if result := out.Result; result != nil && (len(result.JSON) > limit || len(result.Content) > limit+bracketBytes) {
		return fmt.Errorf("a result of %d and %d bytes: %w", len(result.JSON), len(result.Content), errOutOfOrder)
	}
	return r.checkSuspended(out.Suspended)
}

// checkSuspended checks that suspended asks are pending, unchanged, and deferred by the host. Only
// the host decides which requests are permitted.
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

// ApplyTail records the tail that a [Remote] received in the other process. At the end of a run,
// the script may have received responses that do not count. A failure ends the call.
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

// nextEntry reads one entry; nil for one that does not count.
func (r *Recorder) nextEntry(reader *journalReader, end bool) (*journalEntry, bool) {
	tag, ok := reader.number(tagClock)
	if !ok {
		return nil, false
	}
	switch tag {
	case tagResponse:
		seq, ok := reader.number(math.MaxInt32)
		if e, given := r.takeBuffered(seq); given {
			return &e, ok
		}
		return nil, ok && end
	case tagTimer:
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

// Journal returns the journal for another run that continues the call: unused responses are at its
// end. Every started host call must have a response.
func (r *Recorder) Journal() *Journal {
	j := r.book.journal
	for _, seq := range slices.Sorted(maps.Keys(r.buffered)) {
		e, _ := r.takeBuffered(seq)
		j.add(e)
	}
	return j
}

// Rewind resets the recorder for a run with the journal that [Recorder.Journal] returned: it starts
// with the responses at the end of the journal.
func (r *Recorder) Rewind() {
	r.book = newCursor(r.book.journal, r.book.limits)
	r.rewind()
}
