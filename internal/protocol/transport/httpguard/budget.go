package httpguard

import (
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

const (
	// DefaultBudget is the default size of a [Budget] of bytes.
	DefaultBudget = 256 << 20
	// smallHoldBytes is the number of bytes that a client may hold regardless of
	// what others hold.
	smallHoldBytes = 64 << 10
	// progressBytes is the number of bytes that counts as progress; fewer bytes
	// count as none. With progressTimeout it requires a rate of 4 KiB/s.
	progressBytes = 32 << 10
	// progressTimeout is how long a body may go without progress.
	progressTimeout = 8 * time.Second
)

// ErrOverBudget reports that the budget has no room for a message. A retry may
// succeed.
var ErrOverBudget = errors.New("the memory budget for messages is used up")

// Budget bounds the bytes or connections of all clients together, and divides
// them among the clients. A client may hold as much as remains free beside it.
// Parts of the budget are reserved:
//
//   - a quarter for the first hold of each client and for small holds,
//   - a quarter of that for small holds only,
//   - an eighth for authenticated clients.
//
// If there is no room, the Budget revokes a hold of the largest holder: the one
// with the oldest progress. It does so only if this holder holds more than the
// client would. A Budget is safe for concurrent use.
type Budget struct {
	// fixed at creation
	size, small   int64
	returnsMemory bool // return memory to the system after a peak

	mu       sync.Mutex
	used     int64
	revoked  int64 // held by revoked holds until their owners release them
	accounts map[workqueue.Client]*account
	spare    *account // reused for the next client, so that single calls do not allocate
	peak     int64    // maximum of used since memory was last returned
	trimming bool     // a timer will return memory
	trimmed  time.Time
}

// account is the share of one client.
type account struct {
	client workqueue.Client
	held   int64
	holds  *Hold // the first of a list
}

// NewBudget returns a budget of size bytes; 0 means [DefaultBudget].
func NewBudget(size int64) *Budget {
	if size <= 0 {
		size = DefaultBudget
	}
	return &Budget{size: size, small: min(smallHoldBytes, size/16), returnsMemory: true, accounts: map[workqueue.Client]*account{}}
}

// Owner is notified when its hold is revoked.
type Owner interface {
	// Abort makes the owner stop soon, because its hold was revoked in favor of
	// another client. It must not block or use the budget. It is not called after
	// ReleaseAll or Pin returns.
	Abort()
}

// Hold returns an empty hold for a client. A hold with a nil owner is never
// revoked. The hold of a nil budget is unlimited.
func (b *Budget) Hold(c workqueue.Client, o Owner) *Hold {
	return &Hold{budget: b, client: c, owner: o}
}

// Hold is the share of a budget that one message, response or connection holds.
// Take, Release, ReleaseAll and Pin are safe for concurrent use. The zero Hold
// and the nil Hold are unlimited.
type Hold struct {
	// fixed before the first Take
	budget *Budget
	client workqueue.Client

	lastProgress atomic.Int64 // time of the last progress, in nanoseconds; 0 before the start
	moved        atomic.Int64 // bytes since then
	lost         atomic.Bool  // it was revoked

	// guarded by budget.mu
	owner      Owner // nil if the hold cannot be revoked
	n          int64
	account    *account // nil while the hold is empty
	prev, next *Hold
}

// Take reserves n more. It returns false if there is no room, or if the hold
// was revoked.
func (h *Hold) Take(n int) bool {
	if h == nil || h.budget == nil {
		return true
	}
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n == 0 || h.lost.Load() {
		return !h.lost.Load()
	}
	held, first := b.heldBy(h)
	for !b.fits(h, held, int64(n), first) {
		if !b.reclaim(held + int64(n)) {
			return false
		}
	}
	b.add(h, int64(n))
	return true
}

// heldBy returns how much the client of a hold holds, and whether h is its only
// hold. The caller holds mu.
func (b *Budget) heldBy(h *Hold) (held int64, first bool) {
	a := b.accounts[h.client]
	if a == nil {
		return 0, true
	}
	return a.held, a.holds == h && h.next == nil
}

// fits reports whether a client that holds held may hold n more. The caller
// holds mu.
func (b *Budget) fits(h *Hold, held, n int64, first bool) bool {
	room := b.size - b.used - n
	if !h.client.Proved() {
		room -= b.size / 8
	}
	switch {
	case held+n <= b.small:
		return room >= 0
	case first:
		return room >= b.size/16
	}
	room -= b.size / 4
	return held+n <= room
}

// reclaim revokes a hold of the largest holder that holds more than above. It
// returns false if there is none, or if too many revoked bytes are not released
// yet. The caller holds mu.
func (b *Budget) reclaim(above int64) bool {
	if b.revoked > b.size/8 {
		return false
	}
	var slowest *Hold
	largest := above
	for _, a := range b.accounts {
		if a.held > largest {
			if h := a.slowest(); h != nil {
				slowest, largest = h, a.held
			}
		}
	}
	if slowest == nil {
		return false
	}
	n, owner := slowest.n, slowest.owner
	b.drop(slowest)
	slowest.n, slowest.owner = n, nil
	b.revoked += n
	slowest.lost.Store(true)
	owner.Abort()
	return true
}

// slowest returns the revocable hold with the oldest progress; nil if there is
// none.
func (a *account) slowest() (slowest *Hold) {
	for h := a.holds; h != nil; h = h.next {
		if h.owner != nil && (slowest == nil || h.lastProgress.Load() < slowest.lastProgress.Load()) {
			slowest = h
		}
	}
	return slowest
}

// add adds n to a hold. The caller holds mu.
func (b *Budget) add(h *Hold, n int64) {
	if h.account == nil {
		a := b.accounts[h.client]
		if a == nil {
			if a, b.spare = b.spare, nil; a == nil {
				a = &account{}
			}
			a.client = h.client
			b.accounts[h.client] = a
		}
		h.account, h.next = a, a.holds
		if h.next != nil {
			h.next.prev = h
		}
		a.holds = h
		h.moved.Store(0)
		h.lastProgress.Store(time.Now().UnixNano())
	}
	h.n += n
	h.account.held += n
	b.used += n
	b.peak = max(b.peak, b.used)
}

// drop empties a hold. The caller holds mu.
func (b *Budget) drop(h *Hold) {
	a := h.account
	if a == nil {
		return
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		a.holds = h.next
	}
	b.used -= h.n
	if a.held -= h.n; a.holds == nil {
		delete(b.accounts, a.client)
		*a = account{}
		b.spare = a
	}
	h.n, h.account, h.prev, h.next = 0, nil, nil, nil
}

// Release returns n.
func (h *Hold) Release(n int) {
	if h == nil || h.budget == nil {
		return
	}
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	switch give := min(int64(n), h.n); {
	case h.lost.Load():
		b.revoked -= give
		h.n -= give
	case give == h.n:
		b.drop(h)
	default:
		h.n -= give
		h.account.held -= give
		b.used -= give
	}
	b.scheduleTrim()
}

// ReleaseAll returns everything. The hold is not revoked after it.
func (h *Hold) ReleaseAll() {
	if h == nil || h.budget == nil {
		return
	}
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.owner = nil; h.lost.Load() {
		b.revoked -= h.n
		h.n = 0
	} else {
		b.drop(h)
	}
	b.scheduleTrim()
}

// Pin protects the hold from being revoked until it is released. It returns
// false if the hold was revoked before.
func (h *Hold) Pin() bool {
	if h == nil || h.budget == nil {
		return true
	}
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.owner = nil
	return !h.lost.Load()
}

// Lost reports whether the hold was revoked.
func (h *Hold) Lost() bool { return h != nil && h.lost.Load() }

// start starts the time in which the hold must make progress, once.
func (h *Hold) start() {
	if h.lastProgress.Load() == 0 {
		h.lastProgress.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// Progress records that n bytes were received or sent, and reports whether they
// count as progress.
func (h *Hold) Progress(n int) bool {
	if h == nil || h.moved.Add(int64(n)) < progressBytes {
		return false
	}
	h.moved.Store(0)
	h.lastProgress.Store(time.Now().UnixNano())
	return true
}

// Deadline returns the time until which an inbound message must make progress.
func (h *Hold) Deadline() time.Time {
	h.start()
	return time.Unix(0, h.lastProgress.Load()).Add(progressTimeout)
}

// stalled returns the time since the last progress; 0 before the start.
func (h *Hold) stalled(now time.Time) time.Duration {
	mark := h.lastProgress.Load()
	if mark == 0 {
		return 0
	}
	return time.Duration(now.UnixNano() - mark)
}

// Reader returns a reader of r that reserves budget for what it reads. It fails
// with [ErrOverBudget] if there is no room, or if the hold was revoked.
func (h *Hold) Reader(r io.Reader) io.Reader { return &heldReader{r, h} }

type heldReader struct {
	io.Reader
	hold *Hold
}

func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if !r.hold.Take(n) || r.hold.Lost() {
		return 0, ErrOverBudget
	}
	r.hold.Progress(n)
	return n, err
}

const (
	// trimDelay is how long after a peak memory is returned to the system, so
	// that the goroutines of the peak have ended.
	trimDelay = 5 * time.Second
	// trimInterval is the minimum time between two returns, which collect
	// garbage.
	trimInterval = 30 * time.Second
)

// scheduleTrim schedules the return of memory to the system after a peak.
// Without calls the runtime collects no garbage, and would keep the memory for
// long. The caller holds mu.
func (b *Budget) scheduleTrim() {
	if !b.returnsMemory || b.trimming || b.peak < b.size/4 || b.used+b.revoked > b.size/16 {
		return
	}
	b.trimming = true
	time.AfterFunc(max(trimDelay, time.Until(b.trimmed.Add(trimInterval))), func() {
		debug.FreeOSMemory()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.trimming, b.trimmed, b.peak = false, time.Now(), b.used
	})
}
