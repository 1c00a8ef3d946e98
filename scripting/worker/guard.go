package worker

import (
	"context"
	"sync"
	"time"
)

// guard ends the stay of a call in a process whose context has ended: the process
// is told, and killed when it holds the call for longer than grace. It is looked
// at by a watchdog.
type guard struct {
	// fixed at creation
	ctx   context.Context
	peer  *peer
	id    uint64 // of the call
	grace time.Duration
	words *sync.WaitGroup // has who tells the process

	over time.Time // when the context was seen to have ended
}

// Look looks at the context.
func (g *guard) Look() bool {
	switch {
	case g.ctx.Err() == nil:
		return true
	case g.over.IsZero():
		g.over = time.Now()
		g.words.Go(func() { g.peer.cancel(g.id) }) // may take as long as the process lives
		return true
	case time.Since(g.over) < g.grace:
		return true
	}
	g.peer.end(endOverdue)
	g.peer.abandon() // to take its memory apart may take the system as long again
	return false
}

// cancel has the process end a call.
func (p *peer) cancel(id uint64) {
	// When this fails the process has ended, or is about to.
	_ = p.wire.send(frameCancel, func(dst []byte) []byte { return append(dst, uvarint(id)...) })
}
