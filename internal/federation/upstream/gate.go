package upstream

import (
	"context"
	"sync"
	"time"
)

const (
	// maxDialling is how many servers are connected to, and tell what they offer, at once.
	maxDialling = 32
	// maxHeld is how long one of them counts: a server that hangs holds up no other for
	// longer.
	maxHeld = 100 * time.Millisecond
)

// gate bounds how many do something at once that do not take long for it. It is safe for
// concurrent use.
type gate chan struct{}

// enter waits for a place, or until ctx is done. The place is that of another one once leave
// is called, which may be more than once, or maxHeld is over.
func (g gate) enter(ctx context.Context) (leave func()) {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-g })
	late := time.AfterFunc(maxHeld, free)
	return func() {
		late.Stop()
		free()
	}
}
