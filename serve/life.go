package serve

import (
	"sync"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
)

// life is what calls live in: they are cancelled when it ends. The zero life
// is ready for use.
type life struct {
	mu     sync.Mutex
	ended  error // nil while it lasts
	last   uint64
	living map[uint64]*lazyctx.Context
}

// enter adds a call, which a life that has ended cancels at once. [life.leave]
// takes it out again, by the number.
func (l *life) enter(call *lazyctx.Context) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		call.Cancel(l.ended)
	}
	if l.living == nil {
		l.living = map[uint64]*lazyctx.Context{}
	}
	l.last++
	l.living[l.last] = call
	return l.last
}

func (l *life) leave(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.living, number)
}

// end cancels what lives, and what comes later.
func (l *life) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = cause
	for _, call := range l.living {
		call.Cancel(cause)
	}
}
