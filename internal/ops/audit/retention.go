package audit

import "os"

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
