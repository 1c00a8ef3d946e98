package ratelimit

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// concurrencyRetryAfter is the retry delay if too many calls run at once.
const concurrencyRetryAfter = time.Second

// Memory is the [Store] of one process.
type Memory struct {
	// Fixed at creation.
	now   func() time.Time
	epoch time.Time

	// counters are by the ID of their limit. The map is replaced, never modified.
	counters atomic.Pointer[map[ID]*counters]

	// Guarded by mu, which must be held to replace the map.
	mu         sync.Mutex
	lastNumber uint64
}

// NewMemory returns an empty store with the clock now.
func NewMemory(now func() time.Time) *Memory {
	m := &Memory{now: now, epoch: now()}
	m.counters.Store(&map[ID]*counters{})
	return m
}

// Take implements [Store]. It never fails.
func (m *Memory) Take(_ context.Context, charges []Charge) (*Rejection, error) {
	m.lock(charges)
	defer unlock(charges)
	// Read while holding the locks, the time never decreases for a counter.
	now := m.now().Sub(m.epoch)
	var rejection *Rejection
	for i := range charges {
		c := &charges[i]
		c.slot = c.counters.find(c.Key, now)
		wait, busy := c.counters.bucket(c.slot).check(c, now)
		if wait > 0 && (rejection == nil || wait > rejection.RetryAfter) {
			rejection = &Rejection{Limit: c.Limit, ConcurrencyExceeded: busy, RetryAfter: wait}
		}
	}
	if rejection != nil {
		return rejection, nil
	}
	for i := range charges {
		charges[i].counters.bucket(charges[i].slot).charge(&charges[i], now)
	}
	return nil, nil
}

// lock finds and locks the counters of all charges, in a global order to prevent deadlocks.
func (m *Memory) lock(charges []Charge) {
	for i := range charges {
		charges[i].counters = m.countersFor(charges[i].Limit)
	}
	if len(charges) > 1 {
		slices.SortFunc(charges, func(a, b Charge) int { return cmp.Compare(a.counters.number, b.counters.number) })
	}
	for i := range charges {
		charges[i].counters.mu.Lock()
	}
}

func unlock(charges []Charge) {
	for i := range charges {
		charges[i].counters.mu.Unlock()
	}
}

func (m *Memory) countersFor(l *Limit) *counters {
	if known := (*m.counters.Load())[l.ID]; known != nil {
		return known
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := (*m.counters.Load())[l.ID]; known != nil {
		return known
	}
	all := maps.Clone(*m.counters.Load())
	all[l.ID] = m.create()
	m.counters.Store(&all)
	return all[l.ID]
}

// create returns new counters; mu is held.
func (m *Memory) create() *counters {
	m.lastNumber++
	return &counters{number: m.lastNumber, slots: map[string]int{}}
}

// Release implements [Store].
func (m *Memory) Release(charges []Charge) {
	for i := range charges {
		if c := &charges[i]; c.Limit.Concurrency > 0 {
			c.counters.release(c.Key, c.slot)
		}
	}
}

// SetLimits implements [Store].
func (m *Memory) SetLimits(limits []*Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.counters.Load()
	counted := make(map[ID]*counters, len(limits))
	for _, l := range limits {
		if counted[l.ID] = known[l.ID]; counted[l.ID] == nil {
			counted[l.ID] = m.create()
		}
	}
	m.counters.Store(&counted)
}

// Usage implements [Store].
func (m *Memory) Usage(limits []*Limit, n int, _ func(*Limit) iter.Seq[string]) []Usage {
	usages := make([]Usage, len(limits))
	for i, l := range limits {
		usages[i] = m.UsageOf(l, n)
	}
	return usages
}

// UsageOf returns how much of a limit is in use. Calls of the limit wait while it reads the counters.
func (m *Memory) UsageOf(l *Limit, n int) (u Usage) {
	c := (*m.counters.Load())[l.ID]
	if c == nil {
		return u
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := m.now().Sub(m.epoch)
	u.Keys = len(c.buckets)
	// An emission interval is one call; burst of them are available to a full bucket.
	full := time.Duration(l.Burst) * l.Rate.interval()
	for i := sharedSlot; i < len(c.buckets); i++ {
		b := c.bucket(i)
		if used := b.tat - now; used > 0 && full > 0 {
			u.Rate = insertShare(u.Rate, n, b, i, min(1, float64(used)/float64(full)))
		}
		if b.running > 0 && l.Concurrency > 0 {
			u.Concurrency = insertShare(u.Concurrency, n, b, i, min(1, float64(b.running)/float64(l.Concurrency)))
		}
	}
	return u
}

// insertShare adds the share of a bucket to the n largest, in order.
func insertShare(largest []KeyShare, n int, b *bucket, slot int, share float64) []KeyShare {
	if len(largest) == n {
		if n == 0 || share <= largest[n-1].Share {
			return largest
		}
		largest = largest[:n-1]
	}
	at, _ := slices.BinarySearchFunc(largest, share, func(k KeyShare, share float64) int {
		if k.Share >= share {
			return -1
		}
		return 1
	})
	return slices.Insert(largest, at, KeyShare{Key: b.key, Rest: slot == sharedSlot, Share: share})
}

// maxKeys bounds the separate keys of one limit. Beyond it, if none can be removed, new keys share
// one bucket.
const maxKeys = 1 << 16

// sharedSlot is the slot of the bucket that keys beyond maxKeys share.
const sharedSlot = -1

// sweepSteps is the number of buckets to check per new key: more than one, so that sweeping is
// faster than new keys arrive.
const sweepSteps = 4

// counters are the counters of one limit, by key.
type counters struct {
	// number is the position in the lock order.
	number uint64

	mu sync.Mutex
	// buckets are unordered; slots has the index of each key.
	buckets []bucket
	slots   map[string]int
	// sweepIndex is the start of the next sweep.
	sweepIndex int
	shared     bucket
}

type bucket struct {
	key string
	// tat is the theoretical arrival time (GCRA, generic cell rate algorithm) on the clock of the
	// store: the bucket is full again then. All times before now are equivalent.
	tat time.Duration
	// running counts the running calls, if the limit has a concurrency.
	running int
}

func (c *counters) bucket(slot int) *bucket {
	if slot == sharedSlot {
		return &c.shared
	}
	return &c.buckets[slot]
}

// find returns the slot of a key, which is valid until the next find.
func (c *counters) find(key string, now time.Duration) int {
	if slot, known := c.slots[key]; known {
		return slot
	}
	c.sweep(now)
	if len(c.buckets) >= maxKeys {
		return sharedSlot
	}
	key = strings.Clone(key) // the key may be a part of a long request
	c.slots[key] = len(c.buckets)
	c.buckets = append(c.buckets, bucket{key: key, tat: now})
	return len(c.buckets) - 1
}

// sweep removes the next few buckets that are in their initial state.
func (c *counters) sweep(now time.Duration) {
	for range min(sweepSteps, len(c.buckets)) {
		if c.sweepIndex >= len(c.buckets) {
			c.sweepIndex = 0
		}
		if b := &c.buckets[c.sweepIndex]; b.tat > now || b.running > 0 {
			c.sweepIndex++
			continue
		}
		c.remove(c.sweepIndex)
	}
}

// remove removes a bucket, and moves the last one to its slot.
func (c *counters) remove(slot int) {
	last := len(c.buckets) - 1
	delete(c.slots, c.buckets[slot].key)
	if slot < last {
		c.buckets[slot] = c.buckets[last]
		c.slots[c.buckets[slot].key] = slot
	}
	c.buckets[last] = bucket{}
	c.buckets = c.buckets[:last]
}

// release ends a call for a key that was charged at a slot.
func (c *counters) release(key string, slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot != sharedSlot {
		slot = c.slots[key] // a bucket with a running call is not removed, but may have moved
	}
	c.bucket(slot).running--
}

// check returns how long a call has to wait, 0 if it may be made, and whether the concurrency is
// the reason.
func (b *bucket) check(c *Charge, now time.Duration) (wait time.Duration, busy bool) {
	l := c.Limit
	if l.Concurrency > 0 && b.running >= l.Concurrency {
		wait, busy = concurrencyRetryAfter, true
	}
	if interval := c.interval(); interval > 0 {
		if early := max(b.tat, now) + interval - now - time.Duration(l.Burst)*interval; early > max(0, wait) {
			return early, false
		}
	}
	return wait, busy
}

func (b *bucket) charge(c *Charge, now time.Duration) {
	b.tat = max(b.tat, now) + c.interval()
	if c.Limit.Concurrency > 0 {
		b.running++
	}
}
