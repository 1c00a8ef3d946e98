package ratelimit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// busyWait is how long a caller is told to wait for a call of its own to end.
const busyWait = time.Second

// Memory is the [Store] of one process.
type Memory struct {
	// Fixed at creation.
	now   func() time.Time
	epoch time.Time

	// counters are by the ID of their limit; the map is replaced, never changed.
	counters atomic.Pointer[map[ID]*counters]

	// Guarded by mu, which whoever replaces the map holds.
	mu   sync.Mutex
	made uint64
}

// NewMemory returns a store that has counted nothing yet and reads the time from now.
func NewMemory(now func() time.Time) *Memory {
	m := &Memory{now: now, epoch: now()}
	m.counters.Store(&map[ID]*counters{})
	return m
}

// Take implements [Store]. It never fails.
func (m *Memory) Take(_ context.Context, charges []Charge) (*Refusal, error) {
	m.lock(charges)
	defer unlock(charges)
	// Read behind the locks, the time never runs backwards for a counter.
	now := m.now().Sub(m.epoch)
	var refusal *Refusal
	for i := range charges {
		c := &charges[i]
		c.slot = c.counters.find(c.Key, now)
		wait, busy := c.counters.at(c.slot).refuses(c, now)
		if wait > 0 && (refusal == nil || wait > refusal.Wait) {
			refusal = &Refusal{Limit: c.Limit, Busy: busy, Wait: wait}
		}
	}
	if refusal != nil {
		return refusal, nil
	}
	for i := range charges {
		charges[i].counters.at(charges[i].slot).take(&charges[i], now)
	}
	return nil, nil
}

// lock finds the counters of all charges and locks them, in an order that is
// the same for everybody.
func (m *Memory) lock(charges []Charge) {
	for i := range charges {
		charges[i].counters = m.of(charges[i].Limit)
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

// of returns the counters of a limit.
func (m *Memory) of(l *Limit) *counters {
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
	m.made++
	return &counters{number: m.made, slots: map[string]int{}}
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
func (m *Memory) Keep(limits []*Limit) {
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
