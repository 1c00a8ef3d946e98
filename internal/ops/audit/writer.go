package audit

import (
	"errors"
	"os"
	"strconv"
	"time"
)

const (
	// checkpointInterval is the maximum time until lines and the head that contains them are
	// durable, in relaxed mode.
	checkpointInterval = time.Second
	// firstRetry and lastRetry bound the backoff after a failed write.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// writer is the state of the goroutine that writes.
type writer struct {
	log   *Log
	spool *segmentWriter
	// marks updates the mark of the key file; nil if the file is read-only.
	marks *marker
	// known is the last line that is durable in the head.
	known chainEntry
	// retry is the time until the next attempt, 0 while the disk works.
	retry time.Duration
	// probe is the same in strict mode, where records do not wait for it. Without it, a
	// strict log that refuses all calls would never recover.
	probe time.Duration
	// lastLogged is the number of lost records that events have reported; refused is the
	// number of refused records not yet reported.
	lastLogged, refused uint64
	// armed is the duration of the running timer, or 0.
	armed time.Duration
	// maintenanceFailing means that the last maintenance step failed.
	maintenanceFailing bool
	// rotateRetrySize is the size at which a failed rotation is retried.
	rotateRetrySize int64
}

// begin records the events found by Open, and applies retention.
func (w *writer) begin(events []Event) error {
	for _, event := range events {
		w.addEvent(event.Name, event.Attributes)
	}
	if err := w.sync(); err != nil {
		return err
	}
	marks := w.marks
	w.marks = nil // until the file is known to be writable
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
	w.noteMaintenance(w.prune())
	return nil
}

func (w *writer) run() {
	defer close(w.log.done)
	timer := time.NewTimer(checkpointInterval)
	timer.Stop()
	defer timer.Stop()
	var batch []*entry
	for closed := false; !closed; {
		select {
		case <-w.log.wake:
		case <-timer.C:
			w.armed = 0
			w.maintain()
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

// arm sets the timer for maintenance without a record. It does not postpone a running
// timer, however frequent records are.
func (w *writer) arm(timer *time.Timer) {
	due := max(w.retry, w.probe)
	if due == 0 && w.spool.last != w.known {
		due = checkpointInterval
	}
	if due > 0 && (w.armed == 0 || due < w.armed) {
		timer.Reset(due)
		w.armed = due
	}
}

// maintain runs the maintenance that is due.
func (w *writer) maintain() {
	if w.probe > 0 {
		w.addRefused()
		w.commitStrict(nil)
		return
	}
	err := w.sync()
	w.report(err)
	if err == nil {
		w.noteMaintenance(w.checkpoint())
	}
}

// noteMaintenance handles the result of a maintenance step. It logs the first failure.
func (w *writer) noteMaintenance(err error) {
	if err != nil && !w.maintenanceFailing {
		w.log.o.Logger.Warn("maintain audit log", "error", err)
	}
	w.maintenanceFailing = err != nil
}

func (w *writer) commit(batch []*entry) {
	if len(batch) == 0 {
		return
	}
	w.rotateIfLarge()
	w.recordLost()
	w.addRefused()
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

// commitStrict makes a batch durable or discards it, and reports the result to all
// waiters.
func (w *writer) commitStrict(batch []*entry) {
	err := w.sync()
	if err != nil {
		w.spool.discard()
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

// report handles the result of a write. It logs the first failure and the recovery.
func (w *writer) report(err error) {
	if err == nil {
		w.retry, w.probe = 0, 0
		if w.log.fail(false) {
			w.log.o.Logger.Info("audit log recovered", "lost", w.log.counters.lost.Load())
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
		w.log.o.Logger.Error("write audit log", "mode", string(w.log.o.Mode), "error", err)
	}
}

// recordLost adds an event for newly dropped records.
func (w *writer) recordLost() {
	lost := w.log.counters.lost.Load()
	if lost == w.lastLogged || w.retry > 0 {
		return
	}
	w.addEvent(eventLost, map[string]string{"records": strconv.FormatUint(lost-w.lastLogged, 10)})
	w.lastLogged = lost
}

// addRefused adds an event for newly refused records. It counts as reported once it is
// durable.
func (w *writer) addRefused() {
	if w.refused > 0 {
		w.addEvent(eventRejected, map[string]string{"records": strconv.FormatUint(w.refused, 10)})
	}
}

func (w *writer) addEvent(name string, attributes map[string]string) {
	e := newEncoder(w.log.keys.digest, w.log.o.Redactor)
	e.event(&Event{name, attributes}, w.log.o.Now())
	w.spool.add(e.body)
}

// rotateIfLarge rotates a large file. If that fails, the log continues in the same file and
// retries when the file has grown.
func (w *writer) rotateIfLarge() {
	size := w.spool.size()
	if w.retry > 0 || size < max(w.log.o.MaxSize, w.rotateRetrySize) {
		return
	}
	w.rotateRetrySize = 0
	err := w.spool.rotate()
	if err == nil {
		err = errors.Join(w.checkpoint(), w.prune())
	}
	if err != nil {
		w.rotateRetrySize = w.spool.size() + w.log.o.MaxSize/8 + 1
	}
	w.noteMaintenance(err)
}

// checkpoint writes the head with the durable position, and then the mark of the key.
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
	w.addRefused()
	err := w.sync()
	if err != nil {
		w.log.counters.lost.Add(w.spool.last.seq - w.spool.durable.seq)
		w.spool.discard()
		// Cut off partly written lines now, so that they are not torn at the next
		// start.
		err = errors.Join(err, w.spool.reopenTruncated())
	} else {
		err = w.checkpoint()
	}
	return errors.Join(err, w.spool.close(), w.log.lock.Close())
}

// prune removes files beyond the retention. It updates the head before the first
// removal, so that no removed file counts as missing.
func (w *writer) prune() error {
	old, err := listSegments(w.log.o.Path)
	if err != nil {
		return err
	}
	expired := w.countExpired(old)
	if expired == 0 {
		return nil
	}
	w.spool.oldest = w.spool.first
	if expired < len(old) {
		w.spool.oldest = old[expired].first
	}
	if err := w.checkpoint(); err != nil {
		return err
	}
	for _, a := range old[:expired] {
		if err := w.log.o.disk.remove(a.path); err != nil {
			return err
		}
	}
	return nil
}

// countExpired returns the number of files beyond the retention, counted from the oldest.
func (w *writer) countExpired(old []segment) int {
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
