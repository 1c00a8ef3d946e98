// Package audit writes down what was called, by whom, and what became of it.
//
// A [Log] is a file of lines, each a JSON object. [Log.Outcome] adds the line of
// a [Record] when a call has ended; in strict mode [Log.Intent] adds one before
// it does anything, and both return when the disk has confirmed the line.
// Callers that come together share one sync. [Log.Event] tells of what is no
// call. [Verify], [Tail] and [Export] read a log, also while it is written.
//
// # What is written
//
// Arguments are written as their structure and a keyed digest of their canonical
// form: equal arguments have equal digests, and nobody without the key can try
// values. Values are written only when the caller of the package hands them over.
// Members whose names look secret are masked, and values that a redactor knows are taken out
// of all that callers choose or are told. Every text is escaped, and cut at
// a bound, as is the number of members and items.
//
// An [Approval] says what became of the one that policies wanted, and [Unanswered] finds
// those that nobody has given or refused. Of the question there is a keyed digest.
//
// # The chain
//
// Each line holds its number, the authentication code of the line before, and
// its own, an HMAC with the key of the log. The chain goes on across files that
// were put aside and across restarts. The head, a small file that is replaced
// atomically, says how far the log is durable. A strict log writes it before it
// acknowledges a line, a relaxed one within a second of a line; it is durable itself within
// a second, when a file is put aside, and at the end. [Verify] so finds lines that
// were changed, taken out, added or moved, files that are missing, and a tail
// that was cut off before what the head knows. The mark, the
// second line of the key file, holds the number and the code of a record that was durable
// when the mark was written: at the start, within a second of a record, when a file is put
// aside, and at the end. So [Verify] and [Open] also find a log that was removed or rolled
// back together with its head, but for the last second. Who has the key can write any
// log, and who can put back older states of log, head and key file together cuts the
// time between: that takes a witness elsewhere, such as a copy of what verify
// prints. A key file that cannot be written has no mark. Nor is a cut found of lines that are younger than the head: the last second of a
// relaxed log that was killed, and of any log after a loss of power.
//
// A line that was cut off in the midst, by a kill or a loss of power, is taken
// out when the log is opened, and an event tells its length and digest. Any
// other line that is not authentic stays where it is.
//
// # When the disk fails
//
// After a failed write or sync nothing is known of what stands behind the last
// sync that succeeded: systems drop pages that they could not write and call
// them clean. All of that is in memory, so the file is opened anew, cut to its
// durable part and written again. A strict log refuses meanwhile, forgets the
// lines that it has refused, and tries again with each call. A relaxed log
// keeps lines, 4 MiB and a queue of them, and tries again by the clock; beyond
// that it gives records up, and an event tells how many. A relaxed log loses
// what a loss of power takes that is not synced yet, a second of it or 4 MiB;
// a kill takes what is in the queue.
//
// The package does not decide what is written down and when, knows no protocol,
// and sends nothing over a network.
//
// Canonical JSON is written by hand here: the walker masks secrets, sorts and digests
// arguments in one pass without allocating, and the digests in logs must stay what they
// are.
package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is the error of a record that comes after [Log.Close].
var ErrClosed = errors.New("the audit log is closed")

// Log is an audit log. Its methods may be called by many goroutines at once.
type Log struct {
	// Fixed at creation.
	o       Options
	keys    keys
	entries sync.Pool
	lock    *os.File
	wake    chan struct{}
	done    chan struct{}

	// counters are how many lines were handed to the disk, how many had to wait for room in
	// the queue, how many records were given up, and how often the disk was asked to make
	// lines durable.
	counters struct{ records, waited, lost, syncs atomic.Uint64 }

	// writer is that of one goroutine.
	writer writer

	// Guarded by mu.
	mu      sync.Mutex
	room    *sync.Cond
	pending []*entry
	failing bool
	closed  bool
	// closeErr is what was wrong at the end; it is set before done is closed.
	closeErr error
}

// entry is a record on its way to the disk.
type entry struct {
	*encoder
	// written is sent what became of it, in strict mode.
	written chan error
}

// ErrInUse is the error of a log that another process has.
var ErrInUse = errors.New("it is in use by another process")

// Open returns the log at a path, which is made when it is missing, together
// with its folder. One process at a time has it. A log that was cut off in the
// midst of a line goes on behind it, and tells so in an event of its own.
func Open(o Options) (*Log, error) {
	o, err := o.complete()
	if err == nil {
		err = Check(o.Path)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(o.Path), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	held, err := lock(o.Path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	l, err := open(o, held)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", errors.Join(err, held.Close()))
	}
	return l, nil
}

func open(o Options, held *os.File) (*Log, error) {
	old, err := asides(o.Path)
	if err != nil {
		return nil, err
	}
	k, err := ownKey(o.disk, o.Path, len(old) > 0 || exists(o.Path))
	if err != nil {
		return nil, err
	}
	marks := &marker{disk: o.disk, path: o.Path, file: k}
	l := &Log{o: o, keys: derive(k.key), lock: held, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	l.entries.New = func() any { return &entry{newEncoder(l.keys.digest, l.o.Redactor), make(chan error, 1)} }
	s, told, err := resume(o, newChain(l.keys.chain), old, k)
	if err != nil {
		return nil, err
	}
	l.writer = writer{log: l, spool: s, marks: marks}
	if err := l.writer.begin(told); err != nil {
		return nil, errors.Join(err, s.close())
	}
	go l.writer.run()
	return l, nil
}

// exists reports whether there is anything in a file.
func exists(path string) bool {
	info, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Size() > 0)
}

// Intent writes down what is about to be done. In strict mode it returns when
// that is durable, and an error means that nothing may be done. In relaxed mode
// it does nothing: the outcome says it all.
func (l *Log) Intent(r *Record) error {
	if l.o.Mode == Relaxed {
		return nil
	}
	return l.write(func(e *encoder, now time.Time) {
		e.begin(intentKind, now)
		e.call(r)
	})
}

// Strict reports whether nothing may be answered that is not written down.
func (l *Log) Strict() bool { return l.o.Mode == Strict }

// Outcome writes down what became of a call. In strict mode it returns when that
// is durable, and an error means that the caller may not be told what that is. In
// relaxed mode the only error is [ErrClosed].
func (l *Log) Outcome(r *Record) error {
	return l.write(func(e *encoder, now time.Time) { e.outcome(r, now) })
}

// Event writes down what is no call. It is as durable as an outcome.
func (l *Log) Event(v Event) error {
	return l.write(func(e *encoder, now time.Time) { e.event(&v, now) })
}

func (l *Log) write(encode func(*encoder, time.Time)) error {
	e := l.entries.Get().(*entry)
	encode(e.encoder, l.o.Now())
	if err := l.queue(e); err != nil {
		l.entries.Put(e)
		return err
	}
	if l.o.Mode == Relaxed {
		return nil
	}
	err := <-e.written
	l.entries.Put(e)
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

// queue waits for room and leaves an entry to the writer. While the disk fails,
// a relaxed log gives up what it has no room for rather than stop everybody.
func (l *Log) queue(e *entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for waited := false; len(l.pending) >= l.o.Queue && !l.closed; waited = true {
		if l.failing && l.o.Mode == Relaxed {
			l.counters.lost.Add(1)
			l.entries.Put(e)
			return nil
		}
		if !waited {
			l.counters.waited.Add(1)
		}
		l.room.Wait()
	}
	if l.closed {
		return ErrClosed
	}
	l.pending = append(l.pending, e)
	l.rouse()
	return nil
}

func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take hands all entries that wait to the writer, which gives back the slice of
// the last time.
func (l *Log) take(used []*entry) (batch []*entry, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch, l.pending = l.pending, used[:0]
	l.room.Broadcast()
	return batch, l.closed
}

// fail notes whether the disk fails, and reports whether that is news.
func (l *Log) fail(failing bool) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = l.failing != failing
	l.failing = failing
	l.room.Broadcast()
	return news
}

// Failing reports whether the log could not be written when that was last tried, which is
// every few seconds then, whether or not there are calls. In strict mode calls are refused
// meanwhile.
func (l *Log) Failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// Close writes what waits, makes it durable and gives the log up.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	l.rouse()
	<-l.done
	if l.closeErr != nil {
		return fmt.Errorf("close the audit log: %w", l.closeErr)
	}
	return nil
}
