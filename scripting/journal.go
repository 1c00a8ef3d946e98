package scripting

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Journal is the record of one call: what it asked its host, what was
// answered, and in which order, when timers fired, what the clock showed, and what
// code printed.
// A Run that is given a journal with entries answers from it instead of asking
// again, and goes on recording where the journal ends. It must be given the
// same program, input, agent and info, or what the body does with them
// differs. A Journal serves one Run at a time.
type Journal struct {
	entries []journalEntry
	bytes   int
	// seed is that of the run that began the journal.
	seed Seed
}

// NewJournal returns an empty journal.
func NewJournal() *Journal { return &Journal{} }

// Len returns the number of entries.
func (j *Journal) Len() int { return len(j.entries) }

// Bytes returns about how many bytes the entries hold.
func (j *Journal) Bytes() int { return j.bytes }

// errNotOpen says that an answer has no question.
var errNotPending = errors.New("the journal holds no such ask, or its answer already")

// Answer answers an ask of a suspended call, as its host would have: with
// {"responses": {key: result}}. The next Run with the journal goes on with it;
// asks that are left open are suspended again. The journal keeps data.
func (j *Journal) Answer(seq int, data []byte) error {
	return j.close(journalEntry{kind: entryResponse, seq: seq, answer: data})
}

// Refuse ends an ask of a suspended call with a refusal.
func (j *Journal) Refuse(seq int, refused *HostError) error {
	return j.close(journalEntry{kind: entryResponse, seq: seq, refusal: refused})
}

// Replace puts others in the place of the answers to an operation: what with
// makes of each. Its first error ends it. It is for answers that must not leave
// the process with the journal, and are asked for anew before the next run.
func (j *Journal) Replace(op string, with func(answer []byte) ([]byte, error)) error {
	asked := map[int]bool{}
	for i := range j.entries {
		e := &j.entries[i]
		if e.kind == entryCall && e.op == op {
			asked[e.seq] = true
		}
		if e.kind != entryResponse || !asked[e.seq] || e.refusal != nil || e.panicked {
			continue
		}
		answer, err := with(e.answer)
		if err != nil {
			return err
		}
		j.bytes += len(answer) - len(e.answer)
		e.answer = answer
	}
	return nil
}

// Stdout returns what the code of the call has printed, which is bounded by
// [Limits.Stdout]: lines that end with a newline.
func (j *Journal) Stdout() string {
	var b strings.Builder
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryNotification {
			b.Write(e.answer)
		}
	}
	return b.String()
}

func (j *Journal) close(e journalEntry) error {
	open := false
	for _, past := range j.entries {
		if past.seq == e.seq && (past.kind == entryCall || past.kind == entryResponse) {
			open = past.kind == entryCall && past.op == OpAsk
		}
	}
	if !open {
		return fmt.Errorf("answer host call %d: %w", e.seq, errNotPending)
	}
	j.add(e)
	return nil
}

func (j *Journal) add(e journalEntry) {
	j.entries = append(j.entries, e)
	j.bytes += e.size()
}

type entryKind int

const (
	entryCall         entryKind = iota // the body asked its host; an answer follows some time
	entryNotification                  // the body told its host something, such as a log message
	entryResponse                      // the answer was given to the body
	entryTimer                         // a timer fired
	entryClock                         // the clock was read
)

func (k entryKind) String() string {
	return [...]string{"a host call", "a message", "an answer", "a timer", "a look at the clock"}[k]
}

type journalEntry struct {
	kind entryKind
	// seq is the number of the host call or message, or of the timer.
	seq    int
	op     string
	digest [16]byte // of the payload
	// answer, refusal and panicked are how an answered call ended. Of a message, answer
	// is what code has printed by it, and of a call of code the name of its tool.
	answer   []byte
	refusal  *HostError
	panicked bool
	// millis is what the clock showed, to reads times in a row.
	millis int64
	reads  int
}

// entryBytes is what an entry counts beside its answer.
const entryBytes = 64

// size returns about how many bytes an entry holds.
func (e *journalEntry) size() int {
	size := entryBytes + len(e.op) + len(e.answer)
	if e.refusal != nil {
		size += len(e.refusal.Code) + len(e.refusal.Message) + len(e.refusal.Details)
	}
	return size
}

func digestOf(payload []byte) [16]byte {
	sum := sha256.Sum256(payload)
	return [16]byte(sum[:16])
}

// book reads a journal up to its end, and writes it from there on.
type journalCursor struct {
	journal *Journal
	// past is how many entries the journal had when the run began, but for the
	// answers at its end: nothing says that the body went on with them already,
	// so they are given to it like answers that come now.
	recorded, cursor int
	// passed is how many entries [book.tail] has told of. They do not change any
	// more.
	reported int
	buffered []journalEntry
	// reads is how often the clock entry at the cursor was read again.
	reads int
	// latest is what the clock showed last.
	lastClock int64
	limits    Limits
}

func newCursor(j *Journal, limits Limits) journalCursor {
	b := journalCursor{journal: j, limits: limits}
	if j == nil {
		return b
	}
	b.recorded = len(j.entries)
	for b.recorded > 0 && j.entries[b.recorded-1].kind == entryResponse {
		b.recorded--
	}
	b.buffered = slices.Clone(j.entries[b.recorded:])
	j.entries, b.reported = j.entries[:b.recorded], b.recorded
	for i := range b.buffered {
		j.bytes -= b.buffered[i].size()
	}
	return b
}

// arrival returns the next answer that had come before the run began.
func (b *journalCursor) nextBuffered() (e journalEntry, ok bool) {
	if len(b.buffered) == 0 {
		return e, false
	}
	e, b.buffered = b.buffered[0], b.buffered[1:]
	return e, true
}

// arrivalOf returns the answer to one host call that had come before the run
// began. Those of others stay where they are.
func (b *journalCursor) bufferedFor(seq int) (e journalEntry, ok bool) {
	i := slices.IndexFunc(b.buffered, func(e journalEntry) bool { return e.seq == seq })
	if i < 0 {
		return e, false
	}
	e = b.buffered[i]
	b.buffered = slices.Delete(b.buffered, i, i+1)
	return e, true
}

func (b *journalCursor) stdout() string {
	if b.journal == nil || b.limits.Stdout == 0 {
		return ""
	}
	return b.journal.Stdout()
}

// keep puts the answers back that the body did not come to.
func (b *journalCursor) restoreBuffered() {
	for _, e := range b.buffered {
		b.journal.add(e)
	}
}

// seed returns the seed of the call: the one that its journal began with.
func (b *journalCursor) seed(given Seed) Seed {
	switch {
	case b.journal == nil:
		return given
	case b.recorded == 0:
		b.journal.seed = given
	}
	return b.journal.seed
}

func (b *journalCursor) replaying() bool { return b.cursor < b.recorded }

func (b *journalCursor) nondeterministic(what string) *Failure {
	return &Failure{
		Kind:    Nondeterministic,
		Message: fmt.Sprintf("the body did not repeat what it did before: at entry %d of its journal %s", b.cursor+1, what),
	}
}

func (b *journalCursor) write(e journalEntry) *Failure {
	if b.journal == nil {
		b.journal = NewJournal()
	}
	j := b.journal
	if len(j.entries) >= b.limits.HostCalls && e.kind != entryResponse {
		return limitFailure("host_calls", "the body made more than "+strconv.Itoa(b.limits.HostCalls)+" host calls, messages and clock reads")
	}
	j.add(e)
	if j.bytes > b.limits.JournalBytes {
		return limitFailure("journal_bytes", "the answers to the body's host calls have more than "+strconv.Itoa(b.limits.JournalBytes)+" bytes")
	}
	return nil
}

// note takes in an entry that the body comes upon: the one at the cursor, which is past, or a
// new one at the end of the journal. A failure says that the body did something else than it
// did before, or too much.
func (b *journalCursor) record(now journalEntry) (past bool, failure *Failure) {
	if !b.replaying() {
		return false, b.write(now)
	}
	before := &b.journal.entries[b.cursor]
	if before.kind != now.kind || before.seq != now.seq || before.op != now.op || before.digest != now.digest {
		return false, b.nondeterministic("it made " + now.kind.String() + " where it had " + before.kind.String())
	}
	b.cursor++
	return true, nil
}

// event returns the next answer or timer of the past.
func (b *journalCursor) replayEvent() (past *journalEntry, ok bool, failure *Failure) {
	if !b.replaying() {
		return nil, false, nil
	}
	past = &b.journal.entries[b.cursor]
	if past.kind != entryResponse && past.kind != entryTimer {
		return nil, false, b.nondeterministic("it waited where it had made " + past.kind.String())
	}
	b.cursor++
	return past, true, nil
}

// clock returns what the clock shows, which never goes back. Reads that show
// the same share an entry.
func (b *journalCursor) clock(millis func() int64) (int64, *Failure) {
	if b.replaying() {
		past := &b.journal.entries[b.cursor]
		if past.kind != entryClock {
			return 0, b.nondeterministic("it read the clock where it had made " + past.kind.String())
		}
		if b.reads++; b.reads == past.reads {
			b.cursor, b.reads = b.cursor+1, 0
		}
		b.lastClock = past.millis
		return past.millis, nil
	}
	now := max(millis(), b.lastClock)
	b.lastClock = now
	if b.journal != nil && len(b.journal.entries) > b.reported {
		last := &b.journal.entries[len(b.journal.entries)-1]
		if last.kind == entryClock && last.millis == now {
			last.reads++
			return now, nil
		}
	}
	return now, b.write(journalEntry{kind: entryClock, millis: now, reads: 1})
}

// unfinished says that the body ended before it did all that it did before.
func (b *journalCursor) unfinished() *Failure {
	if !b.replaying() {
		return nil
	}
	return b.nondeterministic("it ended where it had made " + b.journal.entries[b.cursor].kind.String())
}
