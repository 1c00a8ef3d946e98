package ratelimit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// busyWait is how long a caller is told to wait for a call of its own to end.
const concurrencyRetryAfter = time.Second

// Memory is the [Store] of one process.
type Memory struct {
	// Fixed at creation.
	now   func() time.Time
	epoch time.Time

	// counters are by the ID of their limit; the map is replaced, never changed.
	counters atomic.Pointer[map[ID]*counters]

	// Guarded by mu, which whoever replaces the map holds.
	mu         sync.Mutex
	lastNumber uint64
}

// NewMemory returns a store that has counted nothing yet and reads the time from now.
func NewMemory(now func() time.Time) *Memory {
	m := &Memory{now: now, epoch: now()}
	m.counters.Store(&map[ID]*counters{})
	return m
}

// Take implements [Store]. It never fails.
func (m *Memory) Take(_ context.Context, charges []Charge) (*Rejection, error) {
	m.lock(charges)
	defer unlock(charges)
	// Read behind the locks, the time never runs backwards for a counter.
	now := m.now().Sub(m.epoch)
	var refusal *Rejection
	for i := range charges {
		c := &charges[i]
		c.slot = c.counters.find(c.Key, now)
		wait, busy := c.counters.bucket(c.slot).check(c, now)
		if wait > 0 && (refusal == nil || wait > refusal.RetryAfter) {
			refusal = &Rejection{Limit: c.Limit, ConcurrencyExceeded: busy, RetryAfter: wait}
		}
	}
	if refusal != nil {
		return refusal, nil
	}
	for i := range charges {
		charges[i].counters.bucket(charges[i].slot).charge(&charges[i], now)
	}
	return nil, nil
}

// lock finds the counters of all charges and locks them, in an order that is
// the same for everybody.
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

// create returns new counters. mu is held.
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

// Keep implements [Store].
func (m *Memory) SetLimits(limits []*Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.counters.Load()
	kept := make(map[ID]*counters, len(limits))
	for _, l := range limits {
		if kept[l.ID] = known[l.ID]; kept[l.ID] == nil {
			kept[l.ID] = m.create()
		}
	}
	m.counters.Store(&kept)
}

// maxKeys bounds how many keys of one limit are counted apart. What comes when
// there are so many, and none can be forgotten, shares one bucket.
const maxKeys = 1 << 16

// overflow is the slot of the bucket that keys share for which there is no room.
const sharedSlot = -1

// sweepSteps is how many buckets are looked at for each key that is new: more
// than one, so that what can be forgotten is found while keys keep coming.
const sweepSteps = 4

// counters are those of one limit, by key.
type counters struct {
	// number is the place in the order in which locks are taken.
	number uint64

	mu sync.Mutex
	// buckets are in no order; slots says where each key is.
	buckets []bucket
	slots   map[string]int
	// hand is where the next sweep goes on.
	sweepIndex int
	shared     bucket
}

type bucket struct {
	key string
	// due is when the calls that were made would have been made at the rate, on
	// the clock of the store: the bucket is whole again then. Times before now
	// are alike (GCRA, the generic cell rate algorithm).
	tat time.Duration
	// running is how many calls run, where the limit counts that.
	running int
}

func (c *counters) bucket(slot int) *bucket {
	if slot == sharedSlot {
		return &c.shared
	}
	return &c.buckets[slot]
}

// find returns the slot of a key, which holds until the next find.
func (c *counters) find(key string, now time.Duration) int {
	if slot, known := c.slots[key]; known {
		return slot
	}
	c.sweep(now)
	if len(c.buckets) >= maxKeys {
		return sharedSlot
	}
	key = strings.Clone(key) // it may be a part of a long request
	c.slots[key] = len(c.buckets)
	c.buckets = append(c.buckets, bucket{key: key, tat: now})
	return len(c.buckets) - 1
}

// sweep forgets, of the next few buckets, those that are as good as new.
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

// forget takes a bucket out, and puts the last one in its place.
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

// release says that a call under a key has ended, which was charged at a slot.
func (c *counters) release(key string, slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot != sharedSlot {
		slot = c.slots[key] // a bucket with a running call is not forgotten, but may have moved
	}
	c.bucket(slot).running--
}

// refuses returns how long a call has to wait, 0 when it may be made, and
// whether it waits for another one to end.
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
