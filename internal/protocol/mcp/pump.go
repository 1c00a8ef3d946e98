package mcp

import (
	"context"
	"sync"
	"time"
)

// quick is how long a message may take so that the next one is served by who
// has read it, too: what costs more gains more by another processor than the
// wake-up of that costs.
const quickTime = 100 * time.Microsecond

// patient is how long reading waits for a message that was expected to be quick.
const takeoverDelay = time.Millisecond

// pump reads the messages of a connection and serves each in the goroutine that
// has read it, which spares a call the start of another and two switches
// between them. When one takes longer than expected, another goroutine goes on
// reading. While messages are not quick, each gets a goroutine at once.
type pump struct {
	// fixed at creation
	conn *Conn
	ctx  context.Context
	next func() (text []byte, served func(), more bool)
	done chan struct{} // closed once there are no more messages

	mu    sync.Mutex
	watch *time.Timer
	armed bool   // watch will fire
	turn  uint64 // counts the messages that were served by who has read them
	seen  uint64 // turn when watch last fired
	busy  bool   // such a message is under way, and nobody reads
	slow  bool   // the message that ended last was not quick
}

// Pump receives texts from the client as [Conn.Receive] does, one after the
// other, until next says that there are no more. It calls next from one
// goroutine at a time, though not always from the same. Pump returns then; what
// was received may still be under way.
func (c *Conn) Pump(ctx context.Context, next func() (text []byte, served func(), more bool)) {
	p := &pump{conn: c, ctx: ctx, next: next, done: make(chan struct{})}
	p.watch = time.AfterFunc(time.Hour, p.check)
	p.watch.Stop()
	// Not here: a call may hold the goroutine past its end.
	go p.run()
	<-p.done
	p.watch.Stop()
}

// run reads until there is no more, or another goroutine has taken over.
func (p *pump) run() {
	for {
		text, served, more := p.next()
		if !more {
			close(p.done)
			return
		}
		b := p.conn.take(p.ctx, text, served)
		if b == nil {
			continue
		}
		turn, apart := p.startInline()
		if apart {
			go p.serve(b)
			continue
		}
		if !p.serveInline(b, turn) {
			return
		}
	}
}

// serveHere serves a message in the goroutine that has read it, and reports
// whether reading is still its matter. What a tool may do to the goroutine
// (runtime.Goexit) does not end reading.
func (p *pump) serveInline(b *batch, turn uint64) (reads bool) {
	exits := true
	defer func() {
		if reads = p.endInline(turn); reads && exits {
			go p.run()
		}
	}()
	p.serve(b)
	exits = false
	return false
}

// serve serves a message, and notes whether it was quick.
func (p *pump) serve(b *batch) {
	began := time.Now()
	p.conn.serve(b)
	slow := time.Since(began) > quickTime
	p.mu.Lock()
	p.slow = slow
	p.mu.Unlock()
}

// begin reports whether the message that was read is to be served apart from
// reading. Otherwise reading rests until [pump.end], or until it is taken over.
func (p *pump) startInline() (turn uint64, apart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow {
		return 0, true
	}
	p.turn++
	p.busy = true
	if !p.armed {
		p.armed, p.seen = true, p.turn
		p.watch.Reset(takeoverDelay)
	}
	return p.turn, false
}

// end reports whether reading is still the matter of who has served the turn.
func (p *pump) endInline(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy || p.turn != turn {
		return false // it was taken over
	}
	p.busy = false
	return true
}

// look takes reading over when one message has been under way since it last
// looked, or since it was told to look. It is the function of watch, which rests
// while there are no messages, so that it costs little under load too.
func (p *pump) check() {
	if p.overdue() {
		p.run()
	}
}

func (p *pump) overdue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.turn != p.seen:
		p.seen = p.turn
		p.watch.Reset(takeoverDelay)
		return false
	case !p.busy:
		p.armed = false
		return false
	}
	p.busy, p.armed, p.slow = false, false, true
	return true
}
