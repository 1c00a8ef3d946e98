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
	// smallHold is how many bytes a client may hold from the whole budget, whatever
	// the others hold.
	smallHoldBytes = 64 << 10
	// progressBytes is what counts as progress: a hold of which fewer bytes have
	// moved since its last progress is as slow as if none had. With slowTime, that
	// is a rate of 4 KiB/s.
	progressBytes = 32 << 10
	// slowTime is how long a body may make no progress.
	progressTimeout = 8 * time.Second
)

// ErrCrowded says that the budget has no room for a message. Another try may succeed.
var ErrOverBudget = errors.New("the messages under way are too large together")

// Budget bounds what all clients hold together, in bytes or in connections, and
// divides it among them. A client may hold as much as stays free beside it. Parts of
// the budget are reserved:
//
//   - a quarter is for the first hold of each client and for small ones,
//   - a quarter of that for small ones alone,
//   - an eighth for clients that have proved who they are.
//
// A client that finds no room takes it from the largest holder, provided that this one
// still holds more afterwards than the client asks for: the hold that has made no
// progress for longest is cut. It is safe for concurrent use.
type Budget struct {
	// fixed at creation
	size, small   int64
	returnsMemory bool // return memory to the system after a flood

	mu       sync.Mutex
	used     int64
	revoked  int64 // held by holds that were cut, until their owners give them back
	accounts map[workqueue.Client]*account
	spare    *account // for the next client, so that lone calls allocate nothing
	peak     int64    // of used, since memory was last returned
	trimming bool     // a timer will return memory
	trimmed  time.Time
}

// account is what one client holds.
type account struct {
	client workqueue.Client
	held   int64
	holds  *Hold // the first of a list
}

// NewBudget returns a budget of so many bytes; 0 stands for [DefaultBudget].
func NewBudget(size int64) *Budget {
	if size <= 0 {
		size = DefaultBudget
	}
	return &Budget{size: size, small: min(smallHoldBytes, size/16), returnsMemory: true, accounts: map[workqueue.Client]*account{}}
}

// Owner is who has a hold.
type Owner interface {
	// Cut makes the owner give up soon, as its hold was cut in favour of another client.
	// It must not block, nor use the budget. It is not called any more once Give or Pin
	// has returned.
	Abort()
}

// Hold returns the hold of a client, which holds nothing yet. One with a nil owner is
// never cut. The hold of a nil budget is bound by nothing.
func (b *Budget) Hold(c workqueue.Client, o Owner) *Hold {
	return &Hold{budget: b, client: c, owner: o}
}

// Hold is what one message, answer or connection holds of a budget. Take, Release,
// Give and Pin may be called from many goroutines. The zero Hold and the nil Hold are
// bound by nothing.
type Hold struct {
	// fixed before the first Take
	budget *Budget
	client workqueue.Client

	lastProgress atomic.Int64 // when it has made progress last, in nanoseconds; 0 before it began
	moved        atomic.Int64 // bytes since then
	lost         atomic.Bool  // it was cut

	// guarded by budget.mu
	owner      Owner // nil when the hold cannot be cut
	n          int64
	account    *account // nil while nothing is held
	prev, next *Hold
}

// Take asks for n more; false means that there is no room for them, or that the hold
// was cut.
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

// holding returns what the client of a hold holds, and whether that is this hold alone.
// mu is held.
func (b *Budget) heldBy(h *Hold) (held int64, first bool) {
	a := b.accounts[h.client]
	if a == nil {
		return 0, true
	}
	return a.held, a.holds == h && h.next == nil
}

// fits reports whether a client that holds so much may hold n more. mu is held.
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

// reclaim cuts a hold of the largest holder, of those who hold more than above. False
// means that there is none, or that too much was cut already which is not given back
// yet. mu is held.
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

// slowest returns the hold that can be cut and has made no progress for longest; nil
// when none can be.
func (a *account) slowest() (slowest *Hold) {
	for h := a.holds; h != nil; h = h.next {
		if h.owner != nil && (slowest == nil || h.lastProgress.Load() < slowest.lastProgress.Load()) {
			slowest = h
		}
	}
	return slowest
}

// add lets a hold have n more. mu is held.
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

// drop takes everything from a hold. mu is held.
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

// Release gives n back.
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

// Give gives everything back. The hold is not cut any more.
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

// Pin keeps the hold from being cut from now on, until it is given back. False means
// that it was cut before.
func (h *Hold) Pin() bool {
	if h == nil || h.budget == nil {
		return true
	}
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.owner = nil
	return !h.lost.Load()
}

// Lost reports whether the hold was cut.
func (h *Hold) Lost() bool { return h != nil && h.lost.Load() }

// begin starts the time in which the hold must make progress, unless it has begun.
func (h *Hold) start() {
	if h.lastProgress.Load() == 0 {
		h.lastProgress.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// Move notes that n bytes were received or sent, and reports whether that makes
// progress.
func (h *Hold) Progress(n int) bool {
	if h == nil || h.moved.Add(int64(n)) < progressBytes {
		return false
	}
	h.moved.Store(0)
	h.lastProgress.Store(time.Now().UnixNano())
	return true
}

// Due returns until when the hold of what is being received must make progress again, or
// the sender is too slow.
func (h *Hold) Deadline() time.Time {
	h.start()
	return time.Unix(0, h.lastProgress.Load()).Add(progressTimeout)
}

// stalled returns for how long the hold has made no progress; 0 before it began.
func (h *Hold) stalled(now time.Time) time.Duration {
	mark := h.lastProgress.Load()
	if mark == 0 {
		return 0
	}
	return time.Duration(now.UnixNano() - mark)
}

// Reader returns a reader of r that takes room for what is read, and ends with
// [ErrCrowded] when there is none, or when the hold was cut.
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
	// trimDelay is how long after a flood memory is returned to the system, so that
	// the goroutines of the flood have ended by then.
	trimDelay = 5 * time.Second
	// trimPause is how often that is done at most: it collects garbage.
	trimInterval = 30 * time.Second
)

// trim arranges for memory to be returned to the system once a flood is over. The runtime
// would keep it for long, as without calls nothing collects garbage. mu is held.
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
