package lanes

import (
	"sync"
	"time"
)

// Queue runs jobs of one kind. It is safe for concurrent use, and needs no
// closing: it has a goroutine for a lane only while that has something to do.
type Queue[Job any] struct {
	run  func(Job)
	most int

	mu      sync.Mutex
	changed *sync.Cond
	lanes   []lane[Job]
	weight  int
	// congested says that somebody has waited in vain and the queue has not
	// been half empty since, so that nobody else need wait.
	congested bool
}

type lane[Job any] struct {
	jobs []weighed[Job]
	busy bool
}

type weighed[Job any] struct {
	job    Job
	weight int
}

// New returns a queue with the given number of lanes that holds jobs of at most
// the weight most together and runs each with run, which must not panic.
func New[Job any](lanes, most int, run func(Job)) *Queue[Job] {
	q := &Queue[Job]{run: run, most: most, lanes: make([]lane[Job], lanes)}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Add orders a job of some weight, such as its bytes. Jobs with the same key
// run in the order in which they were added. While the queue is full it waits,
// at most as long as patience; then it gives the job up, and until the queue is
// half empty nobody waits in vain again. added says that the job will run, and
// waited that there was no room at first and Add has waited for it.
func (q *Queue[Job]) Add(key uint64, weight int, job Job, patience time.Duration) (added, waited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.full() {
		waited = !q.congested
		if q.congested || !q.waitForRoom(patience) {
			q.congested = true
			return false, waited
		}
	}
	l := &q.lanes[key%uint64(len(q.lanes))]
	l.jobs = append(l.jobs, weighed[Job]{job, weight})
	q.weight += weight
	if !l.busy {
		l.busy = true
		go q.work(l)
	}
	return true, waited
}

// full reports whether there is no room; mu is held.
func (q *Queue[Job]) full() bool { return q.weight >= q.most }

// waitForRoom waits until the queue is no longer full, or until patience is
// over; mu is held.
func (q *Queue[Job]) waitForRoom(patience time.Duration) bool {
	over := false
	timer := time.AfterFunc(patience, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		over = true
		q.changed.Broadcast()
	})
	defer timer.Stop()
	for q.full() && !over {
		q.changed.Wait()
	}
	return !q.full()
}

func (q *Queue[Job]) work(l *lane[Job]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(l.jobs) > 0 {
		next := l.jobs[0]
		l.jobs[0] = weighed[Job]{}
		l.jobs = l.jobs[1:]
		q.mu.Unlock()
		q.run(next.job)
		q.mu.Lock()
		q.weight -= next.weight
		q.congested = q.congested && q.weight > q.most/2
		q.changed.Broadcast()
	}
	l.jobs, l.busy = nil, false
}
