package audit

import (
	"errors"
	"os"
	"strconv"
	"time"
)

const (
	// headEvery is how long lines may wait until they are durable, in relaxed mode, and the
	// head that knows of them is.
	headEvery = time.Second
	// firstRetry and lastRetry are how long a log waits before it tries again to write: what
	// it could not, in relaxed mode, and that it could not, in strict mode.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// writer is the goroutine that writes.
type writer struct {
	log   *Log
	spool *spool
	// marks has the key file know how far the log reaches; it is nil where that is not noted.
	marks *marker
	// known is the last line that the head knows for good, whatever becomes of the power.
	known link
	// retry is how long to wait before the next try, 0 while the disk works.
	retry time.Duration
	// probe is the same in strict mode, where records do not wait for it. Without it a
	// server that gets no calls while it refuses them would never come back.
	probe time.Duration
	// told is how many of the lost records an event tells of, and refused are those of
	// strict mode that none tells of yet.
	told, refused uint64
	// armed is how long the timer was set to that runs, 0 when none does.
	armed time.Duration
	// neglected says that the last step of upkeep failed.
	neglected bool
	// crowded is the size at which a file that could not be put aside is tried again.
	crowded int64
}

// begin writes what was found when the log was opened, and looks after old files.
func (w *writer) begin(told []Event) error {
	for _, event := range told {
		w.tell(event.Name, event.Attributes)
	}
	if err := w.sync(); err != nil {
		return err
	}
	marks := w.marks
	w.marks = nil // until it is known that the file can be written
	if err := w.checkpoint(); err != nil {
		return err
	}
	writable, err := marks.begin(w.known)
	if err != nil {
		return err
	}
	if writable {
		w.marks = marks
	} else {
		w.log.o.Logger.Warn("audit key is read-only", "file", keyPath(w.log.o.Path), "effect", "a log that is removed or rolled back together with its head is not detected")
	}
	w.upkeep(w.prune())
	return nil
}

func (w *writer) run() {
	defer close(w.log.done)
	timer := time.NewTimer(headEvery)
	timer.Stop()
	defer timer.Stop()
	var batch []*entry
	for closed := false; !closed; {
		select {
		case <-w.log.wake:
		case <-timer.C:
			w.armed = 0
			w.tend()
		}
		if w.retry == 0 || len(w.spool.unsynced) < maxUnsynced {
			clear(batch)
			batch, closed = w.log.take(batch)
			w.commit(batch)
		} else {
			closed = w.log.isClosed()
		}
		w.arm(timer)
	}
	w.log.closeErr = w.end()
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// arm sets the timer for what there is to do without a record. One that runs is not put
// off, however fast records come.
func (w *writer) arm(timer *time.Timer) {
	due := max(w.retry, w.probe)
	if due == 0 && w.spool.last != w.known {
		due = headEvery
	}
	if due > 0 && (w.armed == 0 || due < w.armed) {
		timer.Reset(due)
		w.armed = due
	}
}

// tend does what is due without a record.
func (w *writer) tend() {
	if w.probe > 0 {
		w.tellRefused()
		w.commitStrict(nil)
		return
	}
	err := w.sync()
	w.report(err)
	if err == nil {
		w.upkeep(w.checkpoint())
	}
}

// upkeep notes what became of a step that no record waits for. The first
// failure is logged.
func (w *writer) upkeep(err error) {
	if err != nil && !w.neglected {
		w.log.o.Logger.Warn("the audit log is written, and its upkeep fails", "error", err)
	}
	w.neglected = err != nil
}

func (w *writer) commit(batch []*entry) {
	if len(batch) == 0 {
		return
	}
	w.makeRoom()
	w.tellLost()
	w.tellRefused()
	for _, e := range batch {
		w.spool.add(e.body)
	}
	if w.log.o.Mode == Strict {
		w.commitStrict(batch)
		return
	}
	w.log.counters.records.Add(uint64(len(batch)))
	for _, e := range batch {
		w.log.entries.Put(e)
	}
	if w.retry > 0 {
		return
	}
	err := w.spool.flush()
	if err == nil && len(w.spool.unsynced) >= maxUnsynced {
		err = w.sync()
	}
	w.report(err)
}

// commitStrict makes a batch durable, or forgets it, and tells all who wait.
func (w *writer) commitStrict(batch []*entry) {
	err := w.sync()
	if err != nil {
		w.spool.drop()
		w.refused += uint64(len(batch))
	} else {
		w.log.counters.records.Add(uint64(len(batch)))
		w.refused = 0
	}
	w.report(err)
	for _, e := range batch {
		e.written <- err
	}
}

func (w *writer) sync() error {
	if len(w.spool.unsynced) > 0 {
		w.log.counters.syncs.Add(1)
	}
	return w.spool.sync()
}

// report notes what became of a write. The first failure is logged, and that
// writing works again.
func (w *writer) report(err error) {
	if err == nil {
		w.retry, w.probe = 0, 0
		if w.log.fail(false) {
			w.log.o.Logger.Info("the audit log is written again", "lost", w.log.counters.lost.Load())
		}
		return
	}
	wait := min(max(2*w.retry, 2*w.probe, firstRetry), lastRetry)
	if w.log.o.Mode == Relaxed {
		w.retry = wait
	} else {
		w.probe = wait
	}
	if w.log.fail(true) {
		w.log.o.Logger.Error("the audit log cannot be written", "mode", string(w.log.o.Mode), "error", err)
	}
}

// tellLost adds an event for records that were given up since the last one.
func (w *writer) tellLost() {
	lost := w.log.counters.lost.Load()
	if lost == w.told || w.retry > 0 {
		return
	}
	w.tell(lostEvent, map[string]string{"records": strconv.FormatUint(lost-w.told, 10)})
	w.told = lost
}

// tellRefused adds an event for records that were refused since the last one. It counts as
// told once it is durable.
func (w *writer) tellRefused() {
	if w.refused > 0 {
		w.tell(refusedEvent, map[string]string{"records": strconv.FormatUint(w.refused, 10)})
	}
}

func (w *writer) tell(name string, attributes map[string]string) {
	e := newEncoder(w.log.keys.digest, w.log.o.Redactor)
	e.event(&Event{name, attributes}, w.log.o.Now())
	w.spool.add(e.body)
}

// makeRoom puts the file aside when it is large. Where that fails the log goes
// on in the same one, and tries again when that has grown.
func (w *writer) makeRoom() {
	size := w.spool.size()
	if w.retry > 0 || size < max(w.log.o.MaxSize, w.crowded) {
		return
	}
	w.crowded = 0
	err := w.spool.rotate()
	if err == nil {
		err = errors.Join(w.checkpoint(), w.prune())
	}
	if err != nil {
		w.crowded = w.spool.size() + w.log.o.MaxSize/8 + 1
	}
	w.upkeep(err)
}

// checkpoint writes the head, which knows only what is durable, and then the mark of the key.
func (w *writer) checkpoint() error {
	o := &w.log.o
	at := w.spool.durable
	if err := replace(o.disk, headPath(o.Path), w.spool.head().encode(w.spool.chain), os.O_TRUNC, file.sync); err != nil {
		return err
	}
	w.known = at
	if w.marks == nil {
		return nil
	}
	return w.marks.reach(at)
}

func (w *writer) end() error {
	w.retry = 0
	batch, _ := w.log.take(nil)
	w.commit(batch)
	w.tellRefused()
	err := w.sync()
	if err != nil {
		w.log.counters.lost.Add(w.spool.last.seq - w.spool.durable.seq)
		w.spool.drop()
		// What is half written would be torn at the next start; it is cut off now if it can be.
		err = errors.Join(err, w.spool.mend())
	} else {
		err = w.checkpoint()
	}
	return errors.Join(err, w.spool.close(), w.log.lock.Close())
}

// prune removes the files that are not to be kept. The head is told before the
// first one goes, so that none is ever missed.
func (w *writer) prune() error {
	old, err := asides(w.log.o.Path)
	if err != nil {
		return err
	}
	gone := w.surplus(old)
	if gone == 0 {
		return nil
	}
	w.spool.oldest = w.spool.first
	if gone < len(old) {
		w.spool.oldest = old[gone].first
	}
	if err := w.checkpoint(); err != nil {
		return err
	}
	for _, a := range old[:gone] {
		if err := w.log.o.disk.remove(a.path); err != nil {
			return err
		}
	}
	return nil
}

// surplus returns how many files are not to be kept, counted from the oldest.
func (w *writer) surplus(old []aside) int {
	keep := w.log.o.Keep
	gone := max(0, len(old)-keep.Files)
	var total int64
	for i := len(old) - 1; i >= gone; i-- {
		info, err := os.Stat(old[i].path)
		if err != nil {
			continue
		}
		total += info.Size()
		tooOld := keep.Age > 0 && w.log.o.Now().Sub(info.ModTime()) > keep.Age
		if tooOld || keep.Bytes > 0 && total > keep.Bytes {
			return i + 1
		}
	}
	return gone
}
