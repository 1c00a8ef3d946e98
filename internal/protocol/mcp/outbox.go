package mcp

import (
	"context"
	"sync"
	"time"
)

const (
	// maxWaiting and maxWaitingBytes bound what waits for a client that reads
	// more slowly than a tool tells. What comes on top of it is dropped.
	maxWaiting      = 1024
	maxWaitingBytes = 256 << 10
	// tailTime is how long what still waits when the call has ended may take:
	// then the answer is the next that is sent.
	tailTime = 2 * time.Second
)

// outbox sends what a tool tells before its result, in order and apart from
// the tool: putting something in never waits for the client. A goroutine runs
// only while there is something to send.
type outbox struct {
	// fixed at creation
	ctx  context.Context // that of the request: when it ends, nobody reads any more
	send func(Frame) error

	mu      sync.Mutex
	waiting []Frame
	bytes   int // of what waits
	dropped int
	ended   bool
	expired bool          // what waits is not worth the wait any more
	idle    chan struct{} // closed when the goroutine has ended; nil when there is none
}

func newOutbox(ctx context.Context, send func(Frame) error) *outbox {
	return &outbox{ctx: ctx, send: send}
}

// put has a frame sent, unless too much waits already or the outbox has ended.
func (o *outbox) put(f Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	if n := len(o.waiting); n == maxWaiting || n > 0 && o.bytes+f.Len() > maxWaitingBytes {
		o.dropped++
		return
	}
	o.waiting = append(o.waiting, f)
	o.bytes += f.Len()
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.run(o.idle)
	}
}

// settle waits until what waits was sent, as long as the tail of a call may take.
func (o *outbox) settle() {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle == nil {
		return
	}
	patience := time.NewTimer(tailTime)
	defer patience.Stop()
	select {
	case <-idle:
	case <-patience.C:
	}
}

// end takes no more frames, waits until those that wait were sent, and returns
// how many were dropped. Nothing is sent after it.
func (o *outbox) end() (dropped int) {
	o.mu.Lock()
	o.ended = true
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		patience := time.AfterFunc(tailTime, o.expire)
		<-idle
		patience.Stop()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

func (o *outbox) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expired = true
}

// run sends until nothing waits.
func (o *outbox) run(idle chan<- struct{}) {
	defer close(idle)
	for {
		f, ok := o.next()
		if !ok {
			return
		}
		if o.send(f) != nil {
			// The failure shows again when the answer is sent, or ends the context.
			o.expire()
		}
	}
}

// next takes the frame to send next; false ends the goroutine.
func (o *outbox) next() (Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.expired || o.ctx.Err() != nil {
		o.dropped += len(o.waiting)
		o.waiting = nil
	}
	if len(o.waiting) == 0 {
		o.waiting, o.bytes, o.idle = nil, 0, nil
		return Frame{}, false
	}
	f := o.waiting[0]
	o.waiting[0] = Frame{}
	o.waiting = o.waiting[1:]
	o.bytes -= f.Len()
	return f, true
}
