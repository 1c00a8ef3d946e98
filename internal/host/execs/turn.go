package execs

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// turns count how many programs of each grant run. The zero turns count none.
type turns struct {
	mu sync.Mutex
	// of has a line for each grant of which somebody runs or waits.
	of map[[sha256.Size]byte]*line
}

// line is a grant whose programs run. It has as many places as may run at once.
type line struct {
	places chan struct{}
	users  int // who runs or waits, guarded by the mutex of turns
}

// take waits for a place of a grant, and returns how it is given back.
func (t *turns) take(ctx context.Context, g grant.Exec) (free func(), err error) {
	key := g.Hash()
	t.mu.Lock()
	if t.of == nil {
		t.of = map[[sha256.Size]byte]*line{}
	}
	l := t.of[key]
	if l == nil {
		l = &line{places: make(chan struct{}, max(1, g.Concurrency))}
		t.of[key] = l
	}
	l.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.of, key)
		}
	}
	select {
	case l.places <- struct{}{}:
		return func() { <-l.places; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
