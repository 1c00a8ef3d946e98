package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// quickTime is the maximum duration of a message for the next one to be served
// in the reading goroutine too. A longer message gains more from another
// processor than the wake-up costs, if another message arrives meanwhile.
const quickTime = 100 * time.Microsecond

// waitedTime is the minimum duration of a read that has waited for its message.
const waitedTime = 20 * time.Microsecond

// takeoverDelay is how long reading pauses for a message that was expected to
// be quick.
const takeoverDelay = time.Millisecond

// pump reads the messages of a connection and serves each in the goroutine that
// read it, which saves starting a goroutine and two switches per call. When a
// message takes longer than expected, another goroutine continues to read.
// While messages are slow, each gets a goroutine of the pool at once, unless the
// client sends one message at a time.
type pump struct {
	// fixed at creation
	conn *Conn
	ctx  context.Context
	next func() (text []byte, served func(), more bool)
	done chan struct{} // closed when there are no more messages
	pool pool          // serves messages while they are slow

	pooled atomic.Int32 // messages that the pool serves

	mu    sync.Mutex
	watch *time.Timer
	armed bool          // watch will fire
	turn  uint64        // counts the messages served in the reading goroutine
	seen  uint64        // turn when watch last fired
	busy  bool          // such a message is running, and no goroutine reads
	last  time.Duration // duration of the last ended message
}

// Pump receives texts from the client, as [Conn.Receive] does, one after
// another until next returns false. It calls next from one goroutine at a time,
// but not always from the same one. When Pump returns, received requests may
// still be running.
func (c *Conn) Pump(ctx context.Context, next func() (text []byte, served func(), more bool)) {
	p := &pump{conn: c, ctx: ctx, next: next, done: make(chan struct{})}
	p.pool = pool{serve: p.servePooled, done: p.done, next: make(chan *batch)}
	p.watch = time.AfterFunc(time.Hour, p.check)
	p.watch.Stop()
	// A separate goroutine, because a call may block it beyond the end of the
	// call.
	go p.run()
	<-p.done
	p.watch.Stop()
}

// run reads until there are no more messages or another goroutine has taken
// over.
func (p *pump) run() {
	for {
		start := time.Now()
		text, served, more := p.next()
		if !more {
			close(p.done)
			return
		}
		b := p.conn.take(p.ctx, text, served)
		if b == nil {
			continue
		}
		turn, separate := p.startInline(time.Since(start) >= waitedTime)
		if separate {
			p.pooled.Add(1)
			p.pool.start(b)
			continue
		}
		if !p.serveInline(b, turn) {
			return
		}
	}
}

// serveInline serves a message in the goroutine that read it, and reports
// whether this goroutine must continue to read. If a tool ends the goroutine
// (runtime.Goexit), a new one continues to read.
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

// serve serves a message and records its duration.
func (p *pump) serve(b *batch) {
	start := time.Now()
	p.conn.serve(b)
	took := time.Since(start)
	p.mu.Lock()
	p.last = took
	p.mu.Unlock()
}

func (p *pump) servePooled(b *batch) {
	defer p.pooled.Add(-1)
	p.serve(b)
}

// startInline reports whether the message must be served in another goroutine.
// Otherwise reading pauses until [pump.endInline], or until it is taken over.
// waited means that the message arrived after the last one had been served.
func (p *pump) startInline(waited bool) (turn uint64, separate bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	alone := waited && p.pooled.Load() == 0
	if p.last > takeoverDelay || p.last > quickTime && !alone {
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

// endInline reports whether the goroutine that served the turn must continue to
// read.
func (p *pump) endInline(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy || p.turn != turn {
		return false // it was taken over
	}
	p.busy = false
	return true
}

// check takes over reading if one message has been running since the last
// check. It is the function of the timer watch, which is stopped while there
// are no messages, so that it costs little under load too.
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
	p.busy, p.armed, p.last = false, false, 2*takeoverDelay
	return true
}

// maxIdle is the maximum number of idle goroutines of a pool.
const maxIdle = 16

// idleTime is how long an idle goroutine waits for a message. It keeps its stack
// meanwhile.
const idleTime = time.Second

// pool serves messages in goroutines. A goroutine that has served a message waits
// for another one, because its stack has grown already: growing it again costs a
// tenth of a call or more.
type pool struct {
	// fixed at creation
	serve func(*batch)
	done  <-chan struct{} // closed when no message follows
	next  chan *batch     // receives a message for an idle goroutine

	idle atomic.Int32 // idle goroutines, at most maxIdle
}

// start serves a message in another goroutine.
func (p *pool) start(b *batch) {
	select {
	case p.next <- b:
	default:
		go p.run(b)
	}
}

// run serves a message, and then others while they arrive in time.
func (p *pool) run(b *batch) {
	var timer *time.Timer
	for b != nil {
		p.serve(b)
		if p.idle.Add(1) > maxIdle {
			p.idle.Add(-1)
			return
		}
		if timer == nil {
			timer = time.NewTimer(idleTime)
		} else {
			timer.Reset(idleTime)
		}
		b = p.wait(timer)
		p.idle.Add(-1)
	}
}

// wait returns the next message, or nil if none arrives in time.
func (p *pool) wait(timer *time.Timer) *batch {
	defer timer.Stop()
	select {
	case b := <-p.next:
		return b
	case <-timer.C:
	case <-p.done:
	}
	return nil
}
