package mcp

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
)

// patientPings is how many pings a peer may leave unanswered.
const patientPings = 2

// heartbeat pings a legacy peer while it is idle (2025-11-25
// basic/utilities/ping), and gives up one that is silent after two pings. A
// peer is not idle while it sends anything at all, or waits for an answer.
type heartbeat struct {
	// fixed at creation
	every time.Duration
	heard *atomic.Uint64 // counts what the peer has sent
	busy  func() bool
	ping  func(Frame)
	lost  func()

	mu      sync.Mutex
	timer   *time.Timer
	last    uint64 // of heard
	missed  int
	stopped bool
}

// start begins to watch the peer; stop must be called in the end. With an
// interval below zero there is nothing to watch.
func (h *heartbeat) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = h.heard.Load()
	if h.every > 0 {
		h.timer = time.AfterFunc(h.every, h.beat)
	}
}

// stop ends the watch. A ping may be under way yet.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// beat looks at the peer once in an interval.
func (h *heartbeat) beat() {
	switch ping, lost := h.look(); {
	case lost:
		h.lost()
	case ping:
		h.ping(requestFrame(rand.Text(), &call.AskRequest{Method: "ping"}, ""))
	}
}

// look judges the interval that ends now, and begins the next.
func (h *heartbeat) look() (ping, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false, false
	}
	if heard := h.heard.Load(); heard != h.last || h.busy() {
		h.last, h.missed = heard, 0
	} else if h.missed == patientPings {
		h.stopped = true
		return false, true
	} else {
		h.missed++
		ping = true
	}
	h.timer.Reset(h.every)
	return ping, false
}
