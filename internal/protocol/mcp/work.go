package mcp

import (
	"context"
	"sync"
)

// work counts what is under way, so that an end can be announced to it and
// awaited.
type work struct {
	// ending is closed by end: what may take forever then comes to its end.
	ending chan struct{}
	// idle is closed once end was called and nothing is under way any more.
	idle chan struct{}

	mu    sync.Mutex
	n     int
	ended bool
}

func newWork() *work {
	return &work{ending: make(chan struct{}), idle: make(chan struct{})}
}

// begin counts one more; false means that nothing new may begin.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.n++
	return true
}

// done takes back one begin.
func (w *work) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	w.settle()
}

// end lets nothing new begin. It may be called more than once.
func (w *work) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	close(w.ending)
	w.settle()
}

// settle closes idle when it is time. The caller holds mu.
func (w *work) settle() {
	if w.ended && w.n == 0 {
		close(w.idle)
	}
}

// wait waits until nothing is under way, or for ctx.
func (w *work) wait(ctx context.Context) error {
	select {
	case <-w.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
