package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// emitter tells a client what a tool tells before its result, as far as the
// client asked to hear it. It never waits for the client.
type callNotifier struct {
	// fixed at creation
	queue     *sendQueue
	tool      string
	requestID string // the request_id of the call
	token     []byte // the client's progress token; nil when it gave none
	level     int32  // the least severe level to send; 0 for none
	canClose  bool   // whether the connection can be closed

	mu   sync.Mutex
	sent bool
	last float64
}

// emitterOf returns the emitter of a call; nil when nothing of what the tool
// tells would be sent.
func (c *request) newNotifier(ctx context.Context, tool string, level int32) *callNotifier {
	if c.origin.emit == nil || len(c.meta.progressToken) == 0 && level == 0 && c.origin.closeStream == nil {
		return nil
	}
	e := &callNotifier{tool: tool, requestID: c.requestID, token: c.meta.progressToken, level: level, canClose: c.origin.closeStream != nil}
	e.queue = newSendQueue(ctx, c.origin.emit)
	if e.canClose {
		e.queue.send = func(f Frame) error {
			if f.IsZero() {
				c.origin.closeStream()
				return nil
			}
			return c.origin.emit(f)
		}
	}
	return e
}

// stop drops what comes too late: nothing may follow the answer. It returns
// when the answer may be sent.
func (e *callNotifier) stop(logger *slog.Logger) {
	if dropped := e.queue.end(); dropped > 0 {
		logger.Info("a client reads too slowly: messages of a call were dropped", "tool", e.tool, "dropped", dropped, "request_id", e.requestID)
	}
}

// Progress sends notifications/progress (2026-07-28 basic/patterns/progress).
// The value must grow with each, so that one which does not is dropped.
func (e *callNotifier) Progress(done float64, total *float64, message string) {
	if len(e.token) == 0 || !finite(done) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent && done <= e.last {
		return
	}
	e.sent, e.last = true, done
	b := appendValue(nil, "progressToken", e.token)
	b = appendNumber(appendMember(b, "progress"), done)
	if total != nil && finite(*total) {
		b = appendNumber(appendMember(b, "total"), *total)
	}
	if message != "" {
		b = appendText(b, "message", message)
	}
	e.queue.put(notification("notifications/progress", b))
}

// Log sends notifications/message (2026-07-28 server/utilities/logging).
func (e *callNotifier) Log(level, message string, fields json.RawMessage) {
	severity := severityOf(level)
	if e.level == 0 || severity < e.level {
		return
	}
	b := appendText(nil, "level", LogLevels[severity-1])
	b = appendText(b, "logger", e.tool)
	if b = appendMember(b, "data"); jsontext.IsObject(fields) {
		b = appendText(append(b, '{'), "message", message)
		b = append(appendValue(b, "fields", fields), '}')
	} else {
		b = jsontext.AppendString(b, message)
	}
	e.queue.put(notification("notifications/message", b))
}

// CloseStream closes the connection once what was told before is sent: no
// message stands for it in the outbox.
func (e *callNotifier) CloseStream() {
	if e.canClose {
		e.queue.put(Frame{})
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func appendNumber(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

const (
	// maxWaiting and maxWaitingBytes bound what waits for a client that reads
	// more slowly than a tool tells. What comes on top of it is dropped.
	maxQueued      = 1024
	maxQueuedBytes = 256 << 10
	// tailTime is how long what still waits when the call has ended may take:
	// then the answer is the next that is sent.
	drainTimeout = 2 * time.Second
)

// outbox sends what a tool tells before its result, in order and apart from
// the tool: putting something in never waits for the client. A goroutine runs
// only while there is something to send.
type sendQueue struct {
	// fixed at creation
	ctx  context.Context // that of the request: when it ends, nobody reads any more
	send func(Frame) error

	mu      sync.Mutex
	pending []Frame
	bytes   int // of what waits
	dropped int
	ended   bool
	expired bool          // what waits is not worth the wait any more
	idle    chan struct{} // closed when the goroutine has ended; nil when there is none
}

func newSendQueue(ctx context.Context, send func(Frame) error) *sendQueue {
	return &sendQueue{ctx: ctx, send: send}
}

// put has a frame sent, unless too much waits already or the outbox has ended.
func (o *sendQueue) put(f Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	if n := len(o.pending); n == maxQueued || n > 0 && o.bytes+f.Len() > maxQueuedBytes {
		o.dropped++
		return
	}
	o.pending = append(o.pending, f)
	o.bytes += f.Len()
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.run(o.idle)
	}
}

// settle waits until what waits was sent, as long as the tail of a call may take.
func (o *sendQueue) flush() {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle == nil {
		return
	}
	patience := time.NewTimer(drainTimeout)
	defer patience.Stop()
	select {
	case <-idle:
	case <-patience.C:
	}
}

// end takes no more frames, waits until those that wait were sent, and returns
// how many were dropped. Nothing is sent after it.
func (o *sendQueue) end() (dropped int) {
	o.mu.Lock()
	o.ended = true
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		patience := time.AfterFunc(drainTimeout, o.expire)
		<-idle
		patience.Stop()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

func (o *sendQueue) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expired = true
}

func (o *sendQueue) run(idle chan<- struct{}) {
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
func (o *sendQueue) next() (Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.expired || o.ctx.Err() != nil {
		o.dropped += len(o.pending)
		o.pending = nil
	}
	if len(o.pending) == 0 {
		o.pending, o.bytes, o.idle = nil, 0, nil
		return Frame{}, false
	}
	f := o.pending[0]
	o.pending[0] = Frame{}
	o.pending = o.pending[1:]
	o.bytes -= f.Len()
	return f, true
}
