package upstream

import (
	"sync"
	"time"
)

// The bounds of what a server says that answers nothing: so much at once, and so much in
// a second. What is more is read later, which holds the server up and nobody else.
const (
	paceBurst = 1000
	paceEach  = time.Millisecond
	// paceSlack is how far ahead a server may be before it is waited for: waiting for each
	// message alone would cost more than the messages.
	paceSlack = 10 * time.Millisecond
)

// pace bounds how fast a server is listened to. It is safe for concurrent use, and the
// zero pace has seen nothing.
type pace struct {
	mu   sync.Mutex
	next time.Time // when the next message may come
}

// keep waits until one more message may be looked at, or over is closed.
func (p *pace) keep(over <-chan struct{}) {
	ahead := p.step(time.Now())
	if ahead < paceSlack {
		return
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	}
}

// step counts a message, and returns how far ahead of its time it is.
func (p *pace) step(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-paceBurst * paceEach); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(paceEach)
	return p.next.Sub(now)
}
