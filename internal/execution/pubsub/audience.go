// Package pubsub tells those who listen that something has changed.
package pubsub

import (
	"maps"
	"slices"
	"sync"
)

// Audience is who listens. It is safe for concurrent use, and the zero Audience
// is empty.
type Audience struct {
	mu        sync.Mutex
	listeners map[int]func(changed []string)
	next      int
}

// Join has fn told of every change, until leave is called.
func (a *Audience) Join(fn func(changed []string)) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		a.listeners = map[int]func([]string){}
	}
	id := a.next
	a.next++
	a.listeners[id] = fn
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, id)
	}
}

// Tell tells everybody who listens now, one after the other.
func (a *Audience) Tell(changed []string) {
	a.mu.Lock()
	listeners := slices.Collect(maps.Values(a.listeners))
	a.mu.Unlock()
	for _, fn := range listeners {
		fn(changed)
	}
}
