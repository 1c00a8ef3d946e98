// Package workqueue keeps account of work that runs beside other work.
//
// A [Queue] runs jobs off the path of those who order them: a few at once,
// those of one key in order, with goroutines only while there is something to
// do. Who orders more than the queue holds waits until there is room. [Calls]
// counts what is under way and waits for the last to end. Neither drops a job,
// starts again what has failed, or ends one.
//
// The queue is written by hand: errgroup and worker pools have no order by key.
package workqueue

import (
	"context"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/identity"
)

// Queue runs jobs of one kind. It is safe for concurrent use, and needs no
// closing: it has goroutines only while it has something to do.
type Queue[Job any] struct {
	run         func(Job)
	width, most int

	// guarded by mu
	mu     sync.Mutex
	weight int
	// lines are the jobs of each key that has any, that of the front under way
	// or next; ready are the keys of those lines that nobody works on.
	lines   map[uint64][]ordered[Job]
	ready   []uint64
	working int
	// waiting are the jobs that found no room, in order.
	waiting []ordered[Job]
	// crowded says that a crowding lasts. begun is closed when the present or
	// next one begins, and number counts them.
	crowded bool
	begun   chan struct{}
	number  uint64
}

type ordered[Job any] struct {
	key    uint64
	weight int
	job    Job
	taken  chan struct{} // closed when there is room, for who waits
}

// New returns a queue that runs as many jobs at once as it is wide, each with
// run, which must not panic. It holds jobs until their weights reach most.
func New[Job any](width, most int, run func(Job)) *Queue[Job] {
	return &Queue[Job]{run: run, width: width, most: most, begun: make(chan struct{}), number: 1}
}

// Add orders a job of some weight, such as its bytes. Jobs with the same key
// run one after the other, in the order in which they were added. While the
// queue is full Add waits, however long that takes, behind all who waited
// before; it reports whether it did.
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

// Crowding returns a channel that is closed once the queue is crowded, and the
// number of that crowding, counted from 1. A crowding begins when somebody has
// to wait, and ends when the queue is half empty.
func (q *Queue[Job]) Crowding() (begun <-chan struct{}, number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun, q.number
}

// full reports whether there is no room; mu is held.
func (q *Queue[Job]) full() bool { return q.weight >= q.most }

// take puts a job into its line; mu is held.
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

// leave makes room of a job that has run, for those who wait; mu is held.
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
	if q.crowded && q.weight <= q.most/2 {
		q.crowded, q.begun = false, make(chan struct{})
		q.number++
	}
}

// Shares counts the places that owners hold: those that they began and those that joined
// them, such as nested calls, which are never refused. The last eighth of the places is for
// owners that hold less than their share, so that one which takes all it can get leaves some
// to others. Places that joined count against their own owner and against owners with a full
// share, and so cannot take the reserve from others. The zero value is ready for use.
type Shares struct {
	mu     sync.Mutex
	held   map[uint64]int
	begun  int
	joined int
}

// reserved is the part of the places that is left for owners below their share.
const reserved = 8

// Begin takes a place of so many for an owner, and reports whether there was one. Each that
// was taken needs its [Shares.End].
func (s *Shares) Begin(owner uint64, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun >= most {
		return false
	}
	if held := s.held[owner]; s.begun+s.joined >= most-most/reserved && held >= s.share(held, most) {
		return false
	}
	s.begun++
	s.take(owner)
	return true
}

// share returns how many places are due to an owner, one more counted who may come. The
// caller holds mu.
func (s *Shares) share(held, most int) int {
	owners := len(s.held) + 1
	if held == 0 {
		owners++
	}
	return max(most/owners, 1)
}

// Join takes a place for what an owner that has one needs beside, whether there is one left
// or not. Each needs its [Shares.Leave].
func (s *Shares) Join(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	s.take(owner)
}

// take takes a place. The caller holds mu.
func (s *Shares) take(owner uint64) {
	if s.held == nil {
		s.held = map[uint64]int{}
	}
	s.held[owner]++
}

// End gives back a place that was begun.
func (s *Shares) End(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun--
	s.give(owner)
}

// Leave gives back a place that joined.
func (s *Shares) Leave(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined--
	s.give(owner)
}

// give gives a place back. The caller holds mu.
func (s *Shares) give(owner uint64) {
	if s.held[owner]--; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

// Calls counts what is under way, and waits for it when no more shall begin.
// The zero value is ready for use.
type Calls struct {
	running  atomic.Int64
	draining atomic.Bool

	mu   sync.Mutex
	idle chan struct{}
}

// Begin counts one more and returns how many are under way. Every Begin needs
// its End, also while draining.
func (c *Calls) Begin() int64 { return c.running.Add(1) }

// End counts one less.
func (c *Calls) End() {
	if c.running.Add(-1) == 0 && c.draining.Load() {
		c.wake()
	}
}

// Running returns how many are under way.
func (c *Calls) Running() int64 { return c.running.Load() }

// Draining reports whether [Calls.StartDrain] has been called.
func (c *Calls) Draining() bool { return c.draining.Load() }

// StartDrain marks that no more shall begin, and reports whether that is new.
func (c *Calls) StartDrain() bool { return !c.draining.Swap(true) }

// Drain waits until nothing is under way, or until ctx is done; then it
// returns the error of ctx. [Calls.StartDrain] comes first.
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

// Client is whom room is shared out to: a principal that has proved who it is, or else the
// address of a caller. Clients can be compared, and are keys of maps. The zero Client
// stands for callers without a credential and without an address.
type Client struct {
	kind       identity.Kind
	issuer, id string
	address    netip.Addr // an IPv4 address, or an IPv6 network of 64 bits
	listener   string     // where callers without an address came in
}

// ClientOf returns the client that a principal is, by its kind, issuer and id. A caller of
// which nothing is proved is its address: an IPv4 address counts as itself, also where it
// is mapped to IPv6, and an IPv6 address as its network of 64 bits, which one host may have
// to itself. Without an address it is the listener.
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

// Proved reports whether the client has proved who it is.
func (c Client) Proved() bool { return c.id != "" }

// Number returns a number for the client, the same for the same seed. Callers who do not
// know the seed cannot choose whom they share a number with. It allocates nothing.
func (c Client) Number(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range [...]string{string(c.kind), c.issuer, c.id, c.listener} {
		maphash.WriteComparable(&h, len(text))
		_, _ = h.WriteString(text) // never fails
	}
	address := c.address.As16() // that of no address is all zeros
	_, _ = h.Write(address[:])  // never fails
	return h.Sum64()
}
