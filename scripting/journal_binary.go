package scripting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The binary form of a journal is a version, the seed, and the entries up to the end. An entry is a
// tag and:
//
//	call, notification  the operation, 16 bytes of digest
//	printed             the output, and then like notification
//	tool call           the name of a tool, and then like call
//	response            the number of the host call, the response
//	refused             the number of the host call, code, message, details
//	panicked            the number of the host call
//	timer               the number of the timer
//	clock               milliseconds since the entry before, zigzag; number of reads
//
// Numbers are varints without superfluous bytes. Texts have a length prefix. An operation is 0 and
// its name at its first occurrence, and later the index of its name. Calls and notifications are
// numbered in their order. Every journal has exactly one form.
const (
	tagCall = iota
	tagNotification
	tagResponse
	tagRefused
	tagPanicked
	tagTimer
	tagClock
	tagPrinted
	tagToolCall
)

// journalVersion changes with the form.
const journalVersion = 2

// Limits of a journal in binary form.
const (
	maxJournalBytes   = 64 << 20
	maxJournalEntries = 1 << 16
	maxOpName         = 64
	maxOps            = 64
)

// errJournal is the error for bytes that are not a journal. It repeats none of them.
var errJournal = errors.New("not a journal")

// MarshalBinary returns the journal as bytes, with all responses and the seed of the call. The
// bytes must be protected from reading and modification: responses are confidential for the caller
// of the tool, and a modified response is trusted.
func (j *Journal) MarshalBinary() ([]byte, error) {
	if len(j.entries) > maxJournalEntries || j.bytes > maxJournalBytes {
		return nil, fmt.Errorf("encode journal: more than %d entries or %d bytes", maxJournalEntries, maxJournalBytes)
	}
	w := journalWriter{out: append([]byte{journalVersion}, j.seed[:]...)}
	for i := range j.entries {
		w.entry(&j.entries[i])
	}
	return w.out, nil
}

type journalWriter struct {
	out    []byte
	ops    []string
	millis int64
}

func (w *journalWriter) entry(e *journalEntry) {
	switch e.kind {
	case entryCall:
		if len(e.answer) > 0 {
			w.numbers(tagToolCall)
			w.text(string(e.answer))
		}
		w.call(tagCall, e)
	case entryNotification:
		if len(e.answer) > 0 {
			w.numbers(tagPrinted)
			w.text(string(e.answer))
		}
		w.call(tagNotification, e)
	case entryTimer:
		w.numbers(tagTimer, e.seq)
	case entryClock:
		w.out = binary.AppendVarint(append(w.out, tagClock), e.millis-w.millis)
		w.numbers(e.reads)
		w.millis = e.millis
	case entryResponse:
		w.response(e)
	}
}

func (w *journalWriter) call(tag int, e *journalEntry) {
	known := slices.Index(w.ops, e.op) + 1
	w.numbers(tag, known)
	if known == 0 {
		w.text(e.op)
		w.ops = append(w.ops, e.op)
	}
	w.out = append(w.out, e.digest[:]...)
}

func (w *journalWriter) response(e *journalEntry) {
	switch {
	case e.panicked:
		w.numbers(tagPanicked, e.seq)
	case e.refusal != nil:
		w.numbers(tagRefused, e.seq)
		w.text(e.refusal.Code)
		w.text(e.refusal.Message)
		w.text(string(e.refusal.Details))
	default:
		w.numbers(tagResponse, e.seq, len(e.answer))
		w.out = append(w.out, e.answer...)
	}
}

func (w *journalWriter) numbers(numbers ...int) {
	for _, n := range numbers {
		w.out = binary.AppendUvarint(w.out, uint64(n))
	}
}

func (w *journalWriter) text(s string) {
	w.numbers(len(s))
	w.out = append(w.out, s...)
}

// UnmarshalBinary decodes the output of [Journal.MarshalBinary]. Other bytes are an error, and
// leave the journal unchanged. Its allocations are proportional to the size of data.
func (j *Journal) UnmarshalBinary(data []byte) error {
	if len(data) > maxJournalBytes {
		return fmt.Errorf("decode journal: more than %d bytes: %w", maxJournalBytes, errJournal)
	}
	if len(data) < 1+len(Seed{}) || data[0] != journalVersion {
		return fmt.Errorf("decode journal: no version %d: %w", journalVersion, errJournal)
	}
	r := journalReader{rest: slices.Clone(data[1+len(Seed{}):])}
	read := Journal{seed: Seed(data[1:])}
	for len(r.rest) > 0 {
		e, ok := r.entry()
		if !ok || len(read.entries) >= maxJournalEntries {
			return fmt.Errorf("decode journal: entry %d: %w", len(read.entries)+1, errJournal)
		}
		read.add(e)
	}
	*j = read
	return nil
}

type journalReader struct {
	rest []byte
	ops  []string
	// pending has, for each host call and notification, whether a response may follow.
	pending []bool
	millis  int64
}

// entry reads an entry. ok is false if there is none.
func (r *journalReader) entry() (e journalEntry, ok bool) {
	tag, ok := r.number(math.MaxInt8)
	if !ok {
		return e, false
	}
	switch tag {
	case tagCall, tagNotification:
		return r.readCall(tag)
	case tagResponse, tagRefused, tagPanicked:
		return r.readResponse(tag)
	case tagTimer:
		e.kind = entryTimer
		e.seq, ok = r.number(math.MaxInt32)
		return e, ok && e.seq > 0
	case tagClock:
		return r.clock()
	case tagPrinted:
		return r.labeled(tagNotification, OpConsole)
	case tagToolCall:
		return r.labeled(tagCall, OpCall, OpResume)
	}
	return e, false
}

// labeled reads a notification with its output, or a call with the name of its tool.
func (r *journalReader) labeled(want int, ops ...string) (e journalEntry, ok bool) {
	text, ok := r.text(maxJournalBytes)
	if tag, known := r.number(want); !ok || len(text) == 0 || !known || tag != want {
		return e, false
	}
	e, ok = r.readCall(want)
	e.answer = text
	return e, ok && slices.Contains(ops, e.op)
}

func (r *journalReader) readCall(tag int) (e journalEntry, ok bool) {
	e.kind = entryCall
	if tag == tagNotification {
		e.kind = entryNotification
	}
	r.pending = append(r.pending, tag == tagCall)
	e.seq = len(r.pending)
	known, ok := r.number(len(r.ops))
	if !ok {
		return e, false
	}
	if known == 0 {
		name, ok := r.text(maxOpName)
		if !ok || len(r.ops) >= maxOps || slices.Contains(r.ops, string(name)) {
			return e, false
		}
		r.ops = append(r.ops, string(name))
		known = len(r.ops)
	}
	e.op = r.ops[known-1]
	digest, ok := r.take(len(e.digest))
	copy(e.digest[:], digest)
	return e, ok
}

func (r *journalReader) readResponse(tag int) (e journalEntry, ok bool) {
	e.kind = entryResponse
	if e.seq, ok = r.number(len(r.pending)); !ok || e.seq == 0 || !r.pending[e.seq-1] {
		return e, false
	}
	r.pending[e.seq-1] = false
	switch tag {
	case tagPanicked:
		e.panicked = true
	case tagRefused:
		e.refusal, ok = r.refusal()
	default:
		e.answer, ok = r.text(maxJournalBytes)
	}
	return e, ok
}

func (r *journalReader) refusal() (*HostError, bool) {
	code, hasCode := r.text(maxOpName)
	message, hasMessage := r.text(maxJournalBytes)
	details, hasDetails := r.text(maxJournalBytes)
	return &HostError{Code: string(code), Message: string(message), Details: details}, hasCode && hasMessage && hasDetails
}

func (r *journalReader) clock() (e journalEntry, ok bool) {
	delta, n := binary.Varint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		return e, false
	}
	r.rest = r.rest[n:]
	r.millis += delta
	reads, ok := r.number(math.MaxInt)
	return journalEntry{kind: entryClock, millis: r.millis, reads: reads}, ok && reads > 0
}

func (r *journalReader) number(largest int) (int, bool) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 || v > uint64(largest) {
		return 0, false
	}
	r.rest = r.rest[n:]
	return int(v), true
}

func (r *journalReader) text(longest int) ([]byte, bool) {
	n, ok := r.number(longest)
	if !ok {
		return nil, false
	}
	return r.take(n)
}

func (r *journalReader) take(n int) ([]byte, bool) {
	if n > len(r.rest) {
		return nil, false
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	if n == 0 {
		return nil, true
	}
	return taken, true
}
