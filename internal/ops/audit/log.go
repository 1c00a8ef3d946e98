// Package audit writes a tamper-evident log of calls, their callers and their outcomes.
//
// A [Log] is a file of lines, each a JSON object. [Log.Outcome] adds the line of a
// [Record] when a call has ended. In strict mode [Log.Intent] adds a line before the
// call does anything. Both return when the disk has confirmed the line; concurrent
// callers share one sync. [Log.Event] records everything that is not a call. [Verify],
// [Tail] and [Export] read a log, also while it is written.
//
// # What is written
//
// Arguments are written as their structure and as a keyed digest of their canonical
// form. Equal arguments have equal digests, and values cannot be guessed without the
// key. Values are written only if the caller passes them. Values of names that look
// like secrets are masked, and the redactor is applied to all untrusted text. Every
// string is escaped and truncated at a bound; the number of members and items is
// bounded too.
//
// An [Approval] records the outcome of a required approval. [PendingApprovals] finds
// approvals that were neither granted nor refused. The question is recorded as a keyed
// digest.
//
// # The chain
//
// Each line holds its number, the authentication code of the previous line and its own
// code, an HMAC with the key of the log. The chain continues across rotated files and
// restarts.
//
// The head is a small file that is replaced atomically. It records how far the log is
// durable. A strict log writes the head before it acknowledges a line, a relaxed log
// within a second of a line. The head itself is durable within a second, at rotation
// and at the end. With the head, [Verify] finds lines that were changed, removed, added
// or moved, missing files, and a tail that was truncated before the line in the head.
//
// The mark is the second line of the key file. It holds the number and the code of a
// record that was durable when the mark was written: at the start, within a second of a
// record, at rotation and at the end. With the mark, [Verify] and [Open] also find a
// log that was removed or rolled back together with its head, except for the last
// second.
//
// Limits: anyone with the key can write any log. Restoring older states of log, head
// and key file together hides the time between; only an external copy, such as the
// output of verify, reveals that. A read-only key file has no mark. A truncation of
// lines later than the head is not found: the last second of a relaxed log that was
// killed, and of any log after a power loss.
//
// [Open] removes a line that was torn by a kill or a power loss, and records its length
// and digest in an event. Any other line that is not authentic stays in place.
//
// # When the disk fails
//
// After a failed write or sync, the state of the file after the last successful sync is
// unknown: systems drop pages that they could not write and mark them clean. The log
// keeps that part in memory, so it reopens the file, truncates it to the durable part
// and writes it again. Meanwhile a strict log refuses calls, forgets the refused lines
// and retries with each call. A relaxed log keeps up to 4 MiB of lines and a queue, and
// retries periodically. Beyond that it drops records, and an event records their
// number. A power loss costs a relaxed log the unsynced lines, up to a second or 4 MiB;
// a kill costs the queue.
//
// The package does not decide what to record and when. It knows no protocol and uses no
// network.
//
// Canonical JSON is written by hand here: the walker masks secrets, sorts and digests
// arguments in one pass without allocation, and the digests in existing logs must not
// change.
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

// ErrClosed is the error of a record after [Log.Close].
var ErrClosed = errors.New("the audit log is closed")

// Log is an audit log. Its methods are safe for concurrent use.
type Log struct {
	// Fixed at creation.
	o       Options
	keys    keys
	entries sync.Pool
	lock    *os.File
	wake    chan struct{}
	done    chan struct{}

	// counters count the lines passed to the disk, the records that waited for room in
	// the queue, the dropped records, and the syncs.
	counters struct{ records, waited, lost, syncs atomic.Uint64 }

	// writer belongs to one goroutine.
	writer writer

	// Guarded by mu.
	mu      sync.Mutex
	room    *sync.Cond
	pending []*entry
	failing bool
	closed  bool
	// closeErr is the error of Close; it is set before done is closed.
	closeErr error
}

// entry is a record on its way to the disk.
type entry struct {
	*encoder
	// written receives the result in strict mode.
	written chan error
}

// ErrInUse is the error for a log that another process has opened.
var ErrInUse = errors.New("it is in use by another process")

// Open opens the log at o.Path, and creates it and its directory if they are missing.
// Only one process at a time can open it. If the log ends in a torn line, Open removes
// it and records an event.
func Open(o Options) (_ *Log, err error) {
	o, err = o.complete()
	if err == nil {
		err = Check(o.Path)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(o.Path), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	lockFile, err := lock(o.Path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	opened := false
	defer func() {
		if !opened { // also after a panic, so that the next Open gets the lock
			err = errors.Join(err, lockFile.Close())
		}
	}()
	l, err := open(o, lockFile)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	opened = true
	return l, nil
}

func open(o Options, lockFile *os.File) (*Log, error) {
	old, err := listSegments(o.Path)
	if err != nil {
		return nil, err
	}
	k, err := ownKey(o.disk, o.Path, len(old) > 0 || exists(o.Path))
	if err != nil {
		return nil, err
	}
	marks := &marker{disk: o.disk, path: o.Path, file: k}
	l := &Log{o: o, keys: derive(k.key), lock: lockFile, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	l.entries.New = func() any { return &entry{newEncoder(l.keys.digest, l.o.Redactor), make(chan error, 1)} }
	s, events, err := resume(o, newChain(l.keys.chain), old, k)
	if err != nil {
		return nil, err
	}
	l.writer = writer{log: l, spool: s, marks: marks}
	if err := l.writer.begin(events); err != nil {
		return nil, errors.Join(err, s.close())
	}
	go l.writer.run()
	return l, nil
}

// exists reports whether a file is not empty.
func exists(path string) bool {
	info, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Size() > 0)
}

// Intent records what is about to be done. In strict mode it returns when the record is
// durable; after an error the call must not be made. In relaxed mode it does nothing,
// since the outcome contains everything.
func (l *Log) Intent(r *Record) error {
	if l.o.Mode == Relaxed {
		return nil
	}
	return l.write(func(e *encoder, now time.Time) {
		e.begin(intentKind, now)
		e.call(r)
	})
}

// Strict reports whether results may be returned only after they are recorded.
func (l *Log) Strict() bool { return l.o.Mode == Strict }

// Path returns the path of the current file.
func (l *Log) Path() string { return l.o.Path }

// Outcome records the result of a call. In strict mode it returns when the record is
// durable; after an error the caller must not get the result. In relaxed mode the only
// error is [ErrClosed].
func (l *Log) Outcome(r *Record) error {
	return l.write(func(e *encoder, now time.Time) { e.outcome(r, now) })
}

// Event records something that is not a call. It is as durable as an outcome.
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

// queue waits for room and passes an entry to the writer. While the disk fails, a
// relaxed log drops entries without room instead of blocking all callers.
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
	l.wakeWriter()
	return nil
}

func (l *Log) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns all waiting entries. The writer passes back the slice of the last call
// for reuse.
func (l *Log) take(used []*entry) (batch []*entry, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch, l.pending = l.pending, used[:0]
	l.room.Broadcast()
	return batch, l.closed
}

// fail sets whether the disk fails, and reports whether that has changed.
func (l *Log) fail(failing bool) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = l.failing != failing
	l.failing = failing
	l.room.Broadcast()
	return changed
}

// Failing reports whether the last write failed. While it fails, the log retries every
// few seconds, with or without calls; in strict mode calls are refused.
func (l *Log) Failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// Close writes the waiting records, makes them durable and closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	l.wakeWriter()
	<-l.done
	if l.closeErr != nil {
		return fmt.Errorf("close the audit log: %w", l.closeErr)
	}
	return nil
}
