package scripting

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Journal is the record of one call: the host calls and their responses in order, the timers that
// fired, the clock reads, and the output of agent code. A Run with a journal that has entries is
// replayed from it, and continues to record at its end. It must have the same program, input, agent
// and info as before; otherwise the script behaves differently. A Journal serves one Run at a time.
type Journal struct {
	entries []journalEntry
	bytes   int
	// seed is the seed of the run that started the journal.
	seed Seed
}

// NewJournal returns an empty journal.
func NewJournal() *Journal { return &Journal{} }

// Len returns the number of entries.
func (j *Journal) Len() int { return len(j.entries) }

// Bytes returns the approximate size of the entries in bytes.
func (j *Journal) Bytes() int { return j.bytes }

// errNotPending is the error for a response without a pending request.
var errNotPending = errors.New("no pending request with this number in the journal")

// Answer records the response to an ask of a suspended call, in the form that the host returns:
// {"responses": {key: result}}. The next Run with the journal continues with it; asks without a
// response are suspended again. The journal keeps data.
func (j *Journal) Answer(seq int, data []byte) error {
	return j.close(journalEntry{kind: entryResponse, seq: seq, answer: data})
}

// Refuse records a refusal of an ask of a suspended call.
func (j *Journal) Refuse(seq int, refused *HostError) error {
	return j.close(journalEntry{kind: entryResponse, seq: seq, refusal: refused})
}

// Replace replaces the responses to an operation by the results of with. It stops at the first
// error of with. It serves responses that must not leave the process with the journal, and are
// requested again before the next run.
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

// Stdout returns the output of the code of the call, limited by [Limits.Stdout]. Each line ends
// with a newline.
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
		return fmt.Errorf("record the response to host call %d: %w", e.seq, errNotPending)
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
	entryCall         entryKind = iota // a host call; an entryResponse follows
	entryNotification                  // a notification of the host, such as a log message
	entryResponse                      // the script received a response
	entryTimer                         // a timer fired
	entryClock                         // the clock was read
)

func (k entryKind) String() string {
	return [...]string{"a host call", "a notification", "a response", "a timer", "a clock read"}[k]
}

type journalEntry struct {
	kind entryKind
	// seq is the number of the host call or notification, or of the timer.
	seq    int
	op     string
	digest [16]byte // of the payload
	// answer, refusal and panicked are the response to a host call. In a notification, answer is
	// the output of agent code; in a call of agent code, the name of the tool.
	answer   []byte
	refusal  *HostError
	panicked bool
	// millis is the time of the clock, for reads consecutive reads.
	millis int64
	reads  int
}

// entryBytes is the size of an entry without its texts.
const entryBytes = 64

// size returns the approximate size of an entry in bytes.
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

// journalCursor replays a journal to its end, and then appends to it.
type journalCursor struct {
	journal *Journal
	// recorded is the number of entries at the start of the run, without the responses at the end:
	// the script may not have continued with them, so they are delivered like new responses.
	recorded, cursor int
	// reported is the number of entries that [journalCursor.tail] has returned. They do not change
	// any more.
	reported int
	buffered []journalEntry
	// reads is the number of replayed reads of the clock entry at the cursor.
	reads int
	// lastClock is the last time of the clock.
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

// nextBuffered returns the next response that arrived before the run started.
func (b *journalCursor) nextBuffered() (e journalEntry, ok bool) {
	if len(b.buffered) == 0 {
		return e, false
	}
	e, b.buffered = b.buffered[0], b.buffered[1:]
	return e, true
}

// bufferedFor returns the response to one host call, if it arrived before the run started. Other
// responses keep their order.
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

// restoreBuffered puts the unused responses back.
func (b *journalCursor) restoreBuffered() {
	for _, e := range b.buffered {
		b.journal.add(e)
	}
}

// seed returns the seed of the call: the seed of its journal, if it has entries.
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
		Message: fmt.Sprintf("the script is not deterministic: at entry %d of its journal %s", b.cursor+1, what),
	}
}

func (b *journalCursor) write(e journalEntry) *Failure {
	if b.journal == nil {
		b.journal = NewJournal()
	}
	j := b.journal
	if len(j.entries) >= b.limits.HostCalls && e.kind != entryResponse {
		return limitFailure("host_calls", "the script made more than "+strconv.Itoa(b.limits.HostCalls)+" host calls, messages and clock reads")
	}
	j.add(e)
	if j.bytes > b.limits.JournalBytes {
		return limitFailure("journal_bytes", "the responses to the host calls of the script exceed "+strconv.Itoa(b.limits.JournalBytes)+" bytes")
	}
	return nil
}

// record compares an entry with the one at the cursor during a replay, or appends it. past reports
// a replay. A failure means that the script deviated from the journal, or exceeded a limit.
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

// replayEvent returns the next response or timer during a replay.
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

// clock returns the time, which never decreases. Consecutive reads of the same time share an entry.
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

// unfinished returns the failure for a script that ended before the end of its replay.
func (b *journalCursor) unfinished() *Failure {
	if !b.replaying() {
		return nil
	}
	return b.nondeterministic("it ended where it had made " + b.journal.entries[b.cursor].kind.String())
}
