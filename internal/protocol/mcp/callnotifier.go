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
func (req *request) newNotifier(ctx context.Context, tool string, level int32) *callNotifier {
	if req.origin.emit == nil || len(req.meta.progressToken) == 0 && level == 0 && req.origin.closeStream == nil {
		return nil
	}
	n := &callNotifier{tool: tool, requestID: req.requestID, token: req.meta.progressToken, level: level, canClose: req.origin.closeStream != nil}
	n.queue = newSendQueue(ctx, req.origin.emit)
	if n.canClose {
		n.queue.send = func(f Frame) error {
			if f.IsZero() {
				req.origin.closeStream()
				return nil
			}
			return req.origin.emit(f)
		}
	}
	return n
}

// stop drops later notifications: nothing may follow the response. After it
// returns, the response may be sent.
func (n *callNotifier) stop(logger *slog.Logger) {
	if dropped := n.queue.end(); dropped > 0 {
		logger.Info("drop notifications of slow client", "tool", n.tool, "dropped", dropped, "request_id", n.requestID)
	}
}

// Progress sends notifications/progress (2026-07-28 basic/patterns/progress).
// The value must increase; a value that does not is dropped.
func (n *callNotifier) Progress(done float64, total *float64, message string) {
	if len(n.token) == 0 || !finite(done) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sent && done <= n.last {
		return
	}
	n.sent, n.last = true, done
	b := appendValue(nil, "progressToken", n.token)
	b = appendNumber(appendMember(b, "progress"), done)
	if total != nil && finite(*total) {
		b = appendNumber(appendMember(b, "total"), *total)
	}
	if message != "" {
		b = appendText(b, "message", message)
	}
	n.queue.put(notification("notifications/progress", b))
}

// Log sends notifications/message (2026-07-28 server/utilities/logging).
func (n *callNotifier) Log(level, message string, fields json.RawMessage) {
	severity := severityOf(level)
	if n.level == 0 || severity < n.level {
		return
	}
	b := appendText(nil, "level", LogLevels[severity-1])
	b = appendText(b, "logger", n.tool)
	if b = appendMember(b, "data"); jsontext.IsObject(fields) {
		b = appendText(append(b, '{'), "message", message)
		b = append(appendValue(b, "fields", fields), '}')
	} else {
		b = jsontext.AppendString(b, message)
	}
	n.queue.put(notification("notifications/message", b))
}

// CloseStream closes the connection after all earlier notifications are sent.
// An empty frame represents it in the queue.
func (n *callNotifier) CloseStream() {
	if n.canClose {
		n.queue.put(Frame{})
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
func (q *sendQueue) put(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	if n := len(q.pending); n == maxQueued || n > 0 && q.bytes+f.Len() > maxQueuedBytes {
		q.dropped++
		return
	}
	q.pending = append(q.pending, f)
	q.bytes += f.Len()
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.run(q.idle)
	}
}

// flush waits until the queued frames are sent, for at most drainTimeout.
func (q *sendQueue) flush() {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
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
func (q *sendQueue) end() (dropped int) {
	q.mu.Lock()
	q.ended = true
	idle := q.idle
	q.mu.Unlock()
	if idle != nil {
		timeout := time.AfterFunc(drainTimeout, q.expire)
		<-idle
		timeout.Stop()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

func (q *sendQueue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expired = true
}

func (q *sendQueue) run(idle chan<- struct{}) {
	defer close(idle)
	for {
		f, ok := q.next()
		if !ok {
			return
		}
		if q.send(f) != nil {
			// The error occurs again when the response is sent, or ends the context.
			q.expire()
		}
	}
}

// next removes the next frame; false ends the goroutine.
func (q *sendQueue) next() (Frame, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.expired || q.ctx.Err() != nil {
		q.dropped += len(q.pending)
		q.pending = nil
	}
	if len(q.pending) == 0 {
		q.pending, q.bytes, q.idle = nil, 0, nil
		return Frame{}, false
	}
	f := q.pending[0]
	q.pending[0] = Frame{}
	q.pending = q.pending[1:]
	q.bytes -= f.Len()
	return f, true
}
