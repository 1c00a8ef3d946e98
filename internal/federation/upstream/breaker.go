package upstream

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// maxFailures is how many calls fail in a row before a connection is given up.
const maxFailures = 5

// ErrFailing is why the calls of a connection end whose calls have failed one after the
// other.
var ErrFailing = errors.New("calls of the server have failed one after the other")

// errTooMuch marks what a server sends that is more than may pass: it is alive, and what
// it answers to another call may be less.
var errTooMuch = errors.New("more than may pass")

// breaker counts how calls end that a connection has been of no use to. It is safe for
// concurrent use.
type breaker struct {
	heard atomic.Uint64 // counts what comes of the server, of whatever kind

	mu sync.Mutex
	// failed are calls without an answer since the last that had one. silent are calls whose
	// time was over and that have all begun since the server was heard for the last time,
	// which was at the time since.
	failed, silent int
	since          uint64
}

// answers notes that the server has answered a call.
func (b *breaker) answers() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.silent = 0, 0
}

// fails notes that a call has come to nothing, and reports whether that is enough.
func (b *breaker) fails() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	return b.failed >= maxFailures
}

// waits notes that the time of a call was over which began when so much had been heard,
// and reports whether that is enough. A server that talks may be slow.
func (b *breaker) waits(began uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard.Load() != began {
		return false
	}
	if b.since != began {
		b.since, b.silent = began, 0
	}
	b.silent++
	return b.silent >= maxFailures
}

// listen returns what is read from the server, of which the breaker hears.
func (b *breaker) listen(r io.ReadCloser) io.ReadCloser { return &heard{r, b} }

type heard struct {
	io.ReadCloser
	by *breaker
}

// Read reads on.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.by.heard.Add(1)
	}
	return n, err
}

// isTooMuch reports whether a server was refused for how much it sends.
func isTooMuch(err error) bool {
	refused, ok := errors.AsType[*jsonguard.Error](err)
	return errors.Is(err, errTooMuch) || ok && (refused.Kind == jsonguard.TooLarge || refused.Kind == jsonguard.TooDeep || refused.Kind == jsonguard.TooMany)
}
