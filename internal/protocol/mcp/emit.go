package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"strconv"
	"sync"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// emitter tells a client what a tool tells before its result, as far as the
// client asked to hear it. It never waits for the client.
type emitter struct {
	// fixed at creation
	out     *outbox
	tool    string
	request string // the request_id of the call
	token   []byte // the client's progress token; nil when it gave none
	level   int32  // the least severe level to send; 0 for none
	closes  bool   // whether the connection can be closed

	mu   sync.Mutex
	told bool
	last float64
}

// emitterOf returns the emitter of a call; nil when nothing of what the tool
// tells would be sent.
func (c *request) emitterOf(ctx context.Context, tool string, level int32) *emitter {
	if c.origin.emit == nil || len(c.meta.progressToken) == 0 && level == 0 && c.origin.closeStream == nil {
		return nil
	}
	e := &emitter{tool: tool, request: c.request, token: c.meta.progressToken, level: level, closes: c.origin.closeStream != nil}
	e.out = newOutbox(ctx, c.origin.emit)
	if e.closes {
		e.out.send = c.sendOrClose
	}
	return e
}

// sendOrClose sends a frame; none closes the connection.
func (c *request) sendOrClose(f Frame) error {
	if f.IsZero() {
		c.origin.closeStream()
		return nil
	}
	return c.origin.emit(f)
}

// stop drops what comes too late: nothing may follow the answer. It returns
// when the answer may be sent.
func (e *emitter) stop(logger *slog.Logger) {
	if dropped := e.out.end(); dropped > 0 {
		logger.Info("a client reads too slowly: messages of a call were dropped", "tool", e.tool, "dropped", dropped, "request_id", e.request)
	}
}

// Progress sends notifications/progress (2026-07-28 basic/patterns/progress).
// The value must grow with each, so that one which does not is dropped.
func (e *emitter) Progress(done float64, total *float64, message string) {
	if len(e.token) == 0 || !finite(done) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told && done <= e.last {
		return
	}
	e.told, e.last = true, done
	b := appendValue(nil, "progressToken", e.token)
	b = appendNumber(appendMember(b, "progress"), done)
	if total != nil && finite(*total) {
		b = appendNumber(appendMember(b, "total"), *total)
	}
	if message != "" {
		b = appendText(b, "message", message)
	}
	e.out.put(notification("notifications/progress", b))
}

// Log sends notifications/message (2026-07-28 server/utilities/logging).
func (e *emitter) Log(level, message string, fields json.RawMessage) {
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
		b = appendString(b, message)
	}
	e.out.put(notification("notifications/message", b))
}

// CloseStream closes the connection once what was told before is sent: no
// message stands for it in the outbox.
func (e *emitter) CloseStream() {
	if e.closes {
		e.out.put(Frame{})
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func appendNumber(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }
