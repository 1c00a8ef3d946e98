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

// Outlet writes a response and holds budget for the part that the client has
// not read. The client has the timeout for each piece, so that a response may
// take long while the client reads it.
type Outlet struct {
	// fixed at creation
	w       http.ResponseWriter
	control http.ResponseController
	timeout time.Duration
	hold    Hold

	aborted     atomic.Bool
	deadlineSet bool // a deadline is set
	remaining   int  // bytes that may be written before the next deadline
}

// NewOutlet returns the outlet of a response to a client. Its budget is b; nil
// means no limit. timeout is the time for the client to read one piece. The
// caller must call [Outlet.Close] at the end.
func NewOutlet(w http.ResponseWriter, b *Budget, c workqueue.Client, timeout time.Duration) *Outlet {
	o := &Outlet{w: w, control: *http.NewResponseController(w), timeout: timeout, hold: Hold{budget: b, client: c}}
	o.hold.owner = o
	return o
}

// Take reserves budget for n bytes that will be written. It returns false if
// there is no room. It is safe for concurrent use.
func (o *Outlet) Take(n int) bool { return o.hold.Take(n) }

// Release returns the budget for n bytes.
func (o *Outlet) Release(n int) { o.hold.Release(n) }

// RenewDeadline restarts the client's time, for the next piece.
func (o *Outlet) RenewDeadline() {
	o.deadlineSet, o.remaining = true, pieceBytes
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if o.aborted.Load() {
		o.expire()
	}
}

// Write writes p, each piece within its time.
func (o *Outlet) Write(p []byte) (written int, err error) {
	for {
		if o.aborted.Load() {
			return written, os.ErrDeadlineExceeded
		}
		if o.remaining <= 0 {
			o.RenewDeadline()
		}
		piece := p[written:min(written+o.remaining, len(p))]
		n, err := o.w.Write(piece)
		written += n
		o.remaining -= n
		o.hold.Progress(n)
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// Flush sends what was written.
func (o *Outlet) Flush() error { return o.control.Flush() }

// Abort makes later writes fail, so that the connection ends. It does not
// block, and must not be called after Close.
func (o *Outlet) Abort() {
	o.aborted.Store(true)
	o.expire()
}

func (o *Outlet) expire() { _ = o.control.SetWriteDeadline(time.Unix(1, 0)) }

// Close returns the budget and clears the deadline, as later responses on the
// connection have their own.
func (o *Outlet) Close() {
	o.hold.ReleaseAll()
	if o.deadlineSet && !o.aborted.Load() {
		_ = o.control.SetWriteDeadline(time.Time{})
	}
}
