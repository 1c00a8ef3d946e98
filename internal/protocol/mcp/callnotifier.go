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

// callNotifier sends the progress and log notifications of a call that the
// client asked for. It never waits for the client.
type callNotifier struct {
	// fixed at creation
	queue     *sendQueue
	tool      string
	requestID string // the request_id of the call
	token     []byte // the client's progress token; nil for none
	level     int32  // the least severe level to send; 0 for none
	canClose  bool   // whether the client can reconnect

	mu   sync.Mutex
	sent bool
	last float64
}

// newNotifier returns the notifier of a call; nil if it would send nothing.
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

// stop drops later notifications: nothing may follow the response. After it
// returns, the response may be sent.
func (e *callNotifier) stop(logger *slog.Logger) {
	if dropped := e.queue.end(); dropped > 0 {
		logger.Info("drop notifications of slow client", "tool", e.tool, "dropped", dropped, "request_id", e.requestID)
	}
}

// Progress sends notifications/progress (2026-07-28 basic/patterns/progress).
// The value must increase; a value that does not is dropped.
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

// CloseStream closes the connection after all earlier notifications are sent.
// An empty frame represents it in the queue.
func (e *callNotifier) CloseStream() {
	if e.canClose {
		e.queue.put(Frame{})
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func appendNumber(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

const (
	// maxQueued and maxQueuedBytes bound the notifications that wait for a slow
	// client. Further ones are dropped.
	maxQueued      = 1024
	maxQueuedBytes = 256 << 10
	// drainTimeout is the time for sending queued notifications after the call
	// has ended. After it, the next frame is the response.
	drainTimeout = 2 * time.Second
)

// sendQueue sends the notifications of a call in order, independently of the
// call: put never waits for the client. A goroutine runs only while there is
// something to send.
type sendQueue struct {
	// fixed at creation
	ctx  context.Context // context of the request; the client is gone when it ends
	send func(Frame) error

	mu      sync.Mutex
	pending []Frame
	bytes   int // bytes in pending
	dropped int
	ended   bool
	expired bool          // drop pending frames
	idle    chan struct{} // closed when the goroutine ends; nil without one
}

func newSendQueue(ctx context.Context, send func(Frame) error) *sendQueue {
	return &sendQueue{ctx: ctx, send: send}
}

// put queues a frame, unless the queue is full or has ended.
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

// flush waits until the queued frames are sent, for at most drainTimeout.
func (o *sendQueue) flush() {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle == nil {
		return
	}
	timeout := time.NewTimer(drainTimeout)
	defer timeout.Stop()
	select {
	case <-idle:
	case <-timeout.C:
	}
}

// end accepts no more frames, waits until the queued ones are sent, and returns
// the number of dropped frames. Nothing is sent after it.
func (o *sendQueue) end() (dropped int) {
	o.mu.Lock()
	o.ended = true
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		timeout := time.AfterFunc(drainTimeout, o.expire)
		<-idle
		timeout.Stop()
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
			// The error occurs again when the response is sent, or ends the context.
			o.expire()
		}
	}
}

// next removes the next frame; false ends the goroutine.
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
