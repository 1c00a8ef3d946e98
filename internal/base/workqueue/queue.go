// Package workqueue manages work that runs in the background.
//
// A [Queue] runs jobs asynchronously: a few at once, jobs with the same key in order,
// with goroutines only while there is work. A caller that adds more than the queue
// holds waits for capacity. [Calls] counts running calls and waits for the last one.
// Neither drops, retries or cancels a job.
//
// The queue is written by hand because errgroup and worker pools have no order by key.
package workqueue

import (
	"context"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/identity"
)

// Queue runs jobs of one kind. It is safe for concurrent use, and needs no closing: it
// has goroutines only while it has work.
type Queue[Job any] struct {
	run          func(Job)
	width, limit int

	// guarded by mu
	mu     sync.Mutex
	weight int
	// lines holds the jobs of each key; the first one is running or next. ready holds
	// the keys of lines that no goroutine works on.
	lines   map[uint64][]ordered[Job]
	ready   []uint64
	working int
	// waiting holds the jobs without capacity, in order.
	waiting []ordered[Job]
	// crowded means that the queue is congested. begun is closed at the start of the
	// current or next congestion, and number counts congestions.
	crowded bool
	begun   chan struct{}
	number  uint64
}

type ordered[Job any] struct {
	key    uint64
	weight int
	job    Job
	taken  chan struct{} // closed when there is capacity, for a waiter
}

// New returns a queue that runs width jobs at once with run, which must not panic. It
// holds jobs until their weights reach limit.
func New[Job any](width, limit int, run func(Job)) *Queue[Job] {
	return &Queue[Job]{run: run, width: width, limit: limit, begun: make(chan struct{}), number: 1}
}

// Add adds a job with a weight, such as its size in bytes. Jobs with the same key run
// in the order of their addition. While the queue is full, Add waits behind earlier
// waiters without a timeout; it reports whether it waited.
func (q *Queue[Job]) Add(key uint64, weight int, job Job) (waited bool) {
	next := ordered[Job]{key: key, weight: weight, job: job}
	q.mu.Lock()
	if !q.full() {
		q.take(next)
		q.mu.Unlock()
		return false
	}
	next.taken = make(chan struct{})
	q.waiting = append(q.waiting, next)
	if !q.crowded {
		q.crowded = true
		close(q.begun)
	}
	q.mu.Unlock()
	<-next.taken
	return true
}

// Crowding returns a channel that is closed once the queue is congested, and the number
// of that congestion, from 1. A congestion starts when a caller has to wait, and ends
// when the queue is half empty.
func (q *Queue[Job]) Crowding() (begun <-chan struct{}, number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun, q.number
}

// full reports whether the queue has no capacity; mu is held.
func (q *Queue[Job]) full() bool { return q.weight >= q.limit }

// take adds a job to its line; mu is held.
func (q *Queue[Job]) take(o ordered[Job]) {
	if q.lines == nil {
		q.lines = map[uint64][]ordered[Job]{}
	}
	line, exists := q.lines[o.key]
	q.lines[o.key] = append(line, o)
	q.weight += o.weight
	if exists {
		return
	}
	q.ready = append(q.ready, o.key)
	if q.working < q.width {
		q.working++
		go q.work()
	}
}

func (q *Queue[Job]) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready) > 0 {
		key := q.ready[0]
		q.ready = q.ready[1:]
		for len(q.lines[key]) > 0 {
			next := q.lines[key][0]
			q.mu.Unlock()
			q.run(next.job)
			q.mu.Lock()
			q.leave(next)
		}
		delete(q.lines, key)
	}
	if q.working--; q.working == 0 {
		q.lines, q.ready = nil, nil
	}
}

// leave frees the capacity of a completed job for waiters; mu is held.
func (q *Queue[Job]) leave(o ordered[Job]) {
	q.lines[o.key][0] = ordered[Job]{}
	q.lines[o.key] = q.lines[o.key][1:]
	q.weight -= o.weight
	for len(q.waiting) > 0 && !q.full() {
		next := q.waiting[0]
		q.waiting[0] = ordered[Job]{}
		q.waiting = q.waiting[1:]
		q.take(next)
		close(next.taken)
	}
	if q.crowded && q.weight <= q.limit/2 {
		q.crowded, q.begun = false, make(chan struct{})
		q.number++
	}
}

// Shares counts the slots that owners hold: started ones, and joined ones such as
// nested calls, which are never rejected. The last eighth of the slots is reserved for
// owners below their share, so that one owner cannot take all. Joined slots count
// against their owner and against owners with a full share, so that they cannot use up
// the reserve for others. The zero value is ready for use.
type Shares struct {
	mu     sync.Mutex
	held   map[uint64]int
	begun  int
	joined int
}

// reserved is the fraction of slots reserved for owners below their share.
const reserved = 8

// Begin takes one of limit slots for an owner, and reports whether one was available.
// Each taken slot needs its [Shares.End].
func (s *Shares) Begin(owner uint64, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun >= limit {
		return false
	}
	if held := s.held[owner]; s.begun+s.joined >= limit-limit/reserved && held >= s.share(held, limit) {
		return false
	}
	s.begun++
	s.take(owner)
	return true
}

// share returns the number of slots due to an owner, counting one more potential owner.
// The caller holds mu.
func (s *Shares) share(held, limit int) int {
	owners := len(s.held) + 1
	if held == 0 {
		owners++
	}
	return max(limit/owners, 1)
}

// Join takes an additional slot for an owner, even if none is left. Each needs its
// [Shares.Leave].
func (s *Shares) Join(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	s.take(owner)
}

// take takes a slot. The caller holds mu.
func (s *Shares) take(owner uint64) {
	if s.held == nil {
		s.held = map[uint64]int{}
	}
	s.held[owner]++
}

// End releases a slot of Begin.
func (s *Shares) End(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun--
	s.give(owner)
}

// Leave releases a slot of Join.
func (s *Shares) Leave(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined--
	s.give(owner)
}

// give releases a slot. The caller holds mu.
func (s *Shares) give(owner uint64) {
	if s.held[owner]--; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

// Calls counts running calls, and waits for them when no more may start. The zero value
// is ready for use.
type Calls struct {
	running  atomic.Int64
	draining atomic.Bool

	mu   sync.Mutex
	idle chan struct{}
}

// Begin counts a new call and returns the number of running ones. Every Begin needs its
// End, even while draining.
func (c *Calls) Begin() int64 { return c.running.Add(1) }

// End counts the end of a call.
func (c *Calls) End() {
	if c.running.Add(-1) == 0 && c.draining.Load() {
		c.wake()
	}
}

// Running returns the number of running calls.
func (c *Calls) Running() int64 { return c.running.Load() }

// Draining reports whether [Calls.StartDrain] was called.
func (c *Calls) Draining() bool { return c.draining.Load() }

// StartDrain marks that no more calls may start, and reports whether this is new.
func (c *Calls) StartDrain() bool { return !c.draining.Swap(true) }

// Drain waits until no call is running, or until ctx is done; then it returns the error
// of ctx. Call [Calls.StartDrain] first.
func (c *Calls) Drain(ctx context.Context) error {
	for {
		idle := c.waiter()
		if c.running.Load() == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiter returns a channel that is closed when the count next reaches zero.
func (c *Calls) waiter() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	return c.idle
}

func (c *Calls) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Client is the unit of fair sharing: an authenticated principal, or the address of an
// anonymous caller. Clients are comparable. The zero Client stands for callers without
// a credential and without an address.
type Client struct {
	kind       identity.Kind
	issuer, id string
	address    netip.Addr // an IPv4 address, or a 64-bit IPv6 network
	listener   string     // listener of callers without an address
}

// ClientOf returns the client of a principal, by its kind, issuer and id. For an
// anonymous caller it is the address: an IPv4 address, also if it is mapped to IPv6, or
// the 64-bit network of an IPv6 address, which one host may own completely. Without an
// address it is the listener.
func ClientOf(p *identity.Principal, address netip.Addr, listener string) Client {
	if p != nil && p.Kind != identity.KindAnonymous && p.ID != "" {
		return Client{kind: p.Kind, issuer: p.Issuer, id: p.ID}
	}
	if !address.IsValid() {
		return Client{listener: listener}
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		address = netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return Client{address: address}
}

// Proved reports whether the client is authenticated.
func (c Client) Proved() bool { return c.id != "" }

// Number returns a number for the client, the same for the same seed. Without knowing
// the seed, callers cannot choose to share a number with another client. It does not
// allocate.
func (c Client) Number(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range [...]string{string(c.kind), c.issuer, c.id, c.listener} {
		maphash.WriteComparable(&h, len(text))
		_, _ = h.WriteString(text) // never fails
	}
	address := c.address.As16() // all zeros without an address
	_, _ = h.Write(address[:])  // never fails
	return h.Sum64()
}
