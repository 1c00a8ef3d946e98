package httpguard

import (
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

const (
	// Buffered is how much net/http keeps back until a handler returns, in bytes: an
	// answer that is no longer waits for its client after that alone, and so need not
	// be held.
	Buffered = 2 << 10
	// pieceBytes is how much a client must take within the time for one write.
	pieceBytes = 64 << 10
)

// Outlet writes a response, of which it holds what its client has yet to take. The client
// has a time for each piece of it, so that an answer may take long as long as it is
// read.
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

// NewOutlet returns the outlet of a response to a client, which takes its room from the
// budget; nil stands for no bound. within is the time that the client has for one piece.
// [Outlet.End] must be called in the end.
func NewOutlet(w http.ResponseWriter, b *Budget, c workqueue.Client, within time.Duration) *Outlet {
	o := &Outlet{w: w, control: *http.NewResponseController(w), timeout: within, hold: Hold{budget: b, client: c}}
	o.hold.owner = o
	return o
}

// Take takes room for n bytes that are to be written; false means that there is none.
// It may be called from many goroutines.
func (o *Outlet) Take(n int) bool { return o.hold.Take(n) }

// Release gives back the room for n bytes.
func (o *Outlet) Release(n int) { o.hold.Release(n) }

// Renew gives the client its time again, for the next piece.
func (o *Outlet) RenewDeadline() {
	o.deadlineSet, o.remaining = true, pieceBytes
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if o.aborted.Load() {
		o.expire()
	}
}

// Write writes p, each piece of it within its time.
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

// Flush sends what was written. A writer that cannot is left to send it later.
func (o *Outlet) Flush() error { return o.control.Flush() }

// Cut has writing fail from now on, so that the connection ends. It does not wait, and
// must not be called any more once the outlet has ended.
func (o *Outlet) Abort() {
	o.aborted.Store(true)
	o.expire()
}

func (o *Outlet) expire() { _ = o.control.SetWriteDeadline(time.Unix(1, 0)) }

// End gives back all room. The connection may carry other responses, which have times of
// their own.
func (o *Outlet) Close() {
	o.hold.ReleaseAll()
	if o.deadlineSet && !o.aborted.Load() {
		_ = o.control.SetWriteDeadline(time.Time{})
	}
}
