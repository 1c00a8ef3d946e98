package workqueue

import "sync"

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
