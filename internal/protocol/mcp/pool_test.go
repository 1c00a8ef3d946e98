package mcp

import (
	"testing"
	"testing/synctest"
	"time"
)

// newTestPool returns a pool with a function that waits for release.
func newTestPool(release <-chan struct{}) (p *pool, done chan struct{}) {
	done = make(chan struct{})
	return &pool{serve: func(*batch) { <-release }, done: done, next: make(chan *batch)}, done
}

func TestPool_idleGoroutineServesNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p, done := newTestPool(release)
		defer close(done)
		for i := range 3 {
			p.start(&batch{})
			synctest.Wait()
			if got := p.idle.Load(); got != 0 {
				t.Fatalf("message %d: %d idle goroutines while it is served", i, got)
			}
			release <- struct{}{}
			synctest.Wait()
			if got := p.idle.Load(); got != 1 {
				t.Fatalf("message %d: %d idle goroutines after it, want 1", i, got)
			}
		}
	})
}

func TestPool_idleGoroutinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p, done := newTestPool(release)
		defer close(done)
		for range 3 * maxIdle {
			p.start(&batch{})
		}
		close(release)
		synctest.Wait()
		if got := p.idle.Load(); got != maxIdle {
			t.Errorf("%d idle goroutines, want %d", got, maxIdle)
		}
		time.Sleep(idleTime)
		synctest.Wait()
		if got := p.idle.Load(); got != 0 {
			t.Errorf("%d idle goroutines after %s", got, idleTime)
		}
	})
}

func TestPool_endsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		close(release)
		p, done := newTestPool(release)
		p.start(&batch{})
		synctest.Wait()
		close(done)
		synctest.Wait()
		if got := p.idle.Load(); got != 0 {
			t.Errorf("%d idle goroutines after the end", got)
		}
	})
}
