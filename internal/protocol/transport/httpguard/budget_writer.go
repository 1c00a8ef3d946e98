package httpguard

import (
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

const (
	// Buffered is the number of bytes that net/http buffers until a handler
	// returns. A response up to this size waits for its client only after that,
	// and so needs no budget.
	Buffered = 2 << 10
	// pieceBytes is the amount that a client must read within the time for one write.
	pieceBytes = 64 << 10
)

// BudgetWriter writes a response and holds budget for the part that the client has
// not read. The client has the timeout for each piece, so that a response may
// take long while the client reads it.
type BudgetWriter struct {
	// fixed at creation
	w       http.ResponseWriter
	control http.ResponseController
	timeout time.Duration
	hold    Hold

	aborted     atomic.Bool
	deadlineSet bool // a deadline is set
	remaining   int  // bytes that may be written before the next deadline
}

// NewBudgetWriter returns the writer of a response to a client. Its budget is b; nil
// means no limit. timeout is the time for the client to read one piece. The
// caller must call [BudgetWriter.Close] at the end.
func NewBudgetWriter(w http.ResponseWriter, b *Budget, c workqueue.Client, timeout time.Duration) *BudgetWriter {
	bw := &BudgetWriter{w: w, control: *http.NewResponseController(w), timeout: timeout, hold: Hold{budget: b, client: c}}
	bw.hold.owner = bw
	return bw
}

// Take reserves budget for n bytes that will be written. It returns false if
// there is no room. It is safe for concurrent use.
func (w *BudgetWriter) Take(n int) bool { return w.hold.Take(n) }

// Release returns the budget for n bytes.
func (w *BudgetWriter) Release(n int) { w.hold.Release(n) }

// RenewDeadline restarts the client's time, for the next piece.
func (w *BudgetWriter) RenewDeadline() {
	w.deadlineSet, w.remaining = true, pieceBytes
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	if w.aborted.Load() {
		w.expire()
	}
}

// Write writes p, each piece within its time.
func (w *BudgetWriter) Write(p []byte) (written int, err error) {
	for {
		if w.aborted.Load() {
			return written, os.ErrDeadlineExceeded
		}
		if w.remaining <= 0 {
			w.RenewDeadline()
		}
		piece := p[written:min(written+w.remaining, len(p))]
		n, err := w.w.Write(piece)
		written += n
		w.remaining -= n
		w.hold.Progress(n)
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// Flush sends what was written.
func (w *BudgetWriter) Flush() error { return w.control.Flush() }

// Abort makes later writes fail, so that the connection ends. It does not
// block, and must not be called after Close.
func (w *BudgetWriter) Abort() {
	w.aborted.Store(true)
	w.expire()
}

func (w *BudgetWriter) expire() { _ = w.control.SetWriteDeadline(time.Unix(1, 0)) }

// Close returns the budget and clears the deadline, as later responses on the
// connection have their own.
func (w *BudgetWriter) Close() {
	w.hold.ReleaseAll()
	if w.deadlineSet && !w.aborted.Load() {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}
