package lanes

import (
	"context"
	"sync"
	"time"
)

// Queue runs jobs of one kind. It is safe for concurrent use.
type Queue[Job any] struct {
	run  func(Job)
	most int

	mu      sync.Mutex
	changed *sync.Cond
	lanes   []lane[Job]
	queued  int
	waits   uint64
}

type lane[Job any] struct {
	jobs []Job
	busy bool
}

// New returns a queue with the given number of lanes that holds at most most
// jobs and runs each with run, which must not panic.
func New[Job any](lanes, most int, run func(Job)) *Queue[Job] {
	q := &Queue[Job]{run: run, most: most, lanes: make([]lane[Job], lanes)}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Add orders a job. Jobs with the same key run in the order in which they were
// added. While the queue is full it waits, at most as long as patience; then it
// gives the job up and returns false.
func (q *Queue[Job]) Add(key uint64, job Job, patience time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queued >= q.most && !q.waitForRoom(patience) {
		return false
	}
	l := &q.lanes[key%uint64(len(q.lanes))]
	l.jobs = append(l.jobs, job)
	q.queued++
	if !l.busy {
		l.busy = true
		go q.work(l)
	}
	return true
}

// waitForRoom waits until the queue is no longer full, or until patience is
// over; mu is held.
func (q *Queue[Job]) waitForRoom(patience time.Duration) bool {
	q.waits++
	over := false
	timer := time.AfterFunc(patience, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		over = true
		q.changed.Broadcast()
	})
	defer timer.Stop()
	for q.queued >= q.most && !over {
		q.changed.Wait()
	}
	return q.queued < q.most
}

func (q *Queue[Job]) work(l *lane[Job]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(l.jobs) > 0 {
		job := l.jobs[0]
		l.jobs = l.jobs[1:]
		q.mu.Unlock()
		q.run(job)
		q.mu.Lock()
		q.queued--
		q.changed.Broadcast()
	}
	l.jobs, l.busy = nil, false
	q.changed.Broadcast()
}

// Flush waits until every job has ended, or until ctx is done; then it returns
// the error of ctx.
func (q *Queue[Job]) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.working() && ctx.Err() == nil {
		q.changed.Wait()
	}
	if q.working() {
		return ctx.Err()
	}
	return nil
}

// working reports whether any lane has a goroutine; mu is held.
func (q *Queue[Job]) working() bool {
	for i := range q.lanes {
		if q.lanes[i].busy {
			return true
		}
	}
	return false
}

// Waits counts how often somebody had to wait because the queue was full.
func (q *Queue[Job]) Waits() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waits
}
