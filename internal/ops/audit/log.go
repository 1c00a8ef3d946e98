package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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

	counters struct{ records, waited, failures, lost, rotations, syncs atomic.Uint64 }

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

// Stats counts what a log has done since it was opened.
type Stats struct {
	// Records is how many lines were handed to the disk; Waited how many had to
	// wait for room in the queue.
	Records, Waited uint64
	// Failures is how often the disk failed, Lost how many records were given up
	// for that, in relaxed mode.
	Failures, Lost uint64
	// Rotations is how often a file was put aside, Syncs how often the disk was
	// asked to make lines durable.
	Rotations, Syncs uint64
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
		err = os.MkdirAll(folderOf(o.Path), 0o700)
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
	var marks *marker // nil for a key that the program brings
	if o.Key == nil {
		k, err := ownKey(o.disk, o.Path, len(old) > 0 || exists(o.Path))
		if err != nil {
			return nil, err
		}
		o.Key, marks = k.key, &marker{disk: o.disk, path: o.Path, file: k}
	}
	l := &Log{o: o, keys: derive(o.Key), lock: held, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.room = sync.NewCond(&l.mu)
	l.entries.New = func() any { return &entry{newEncoder(l.keys.digest, l.o.Veil), make(chan error, 1)} }
	s, told, err := resume(o, newChain(l.keys.chain), old, marks)
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
	return l.write(func(e *encoder, now time.Time) { e.intent(r, now) })
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

// write encodes a line and hands it to the writer.
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

// rouse wakes the writer.
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

// Stats returns what the log has done.
func (l *Log) Stats() Stats {
	c := &l.counters
	return Stats{c.records.Load(), c.waited.Load(), c.failures.Load(), c.lost.Load(), c.rotations.Load(), c.syncs.Load()}
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
