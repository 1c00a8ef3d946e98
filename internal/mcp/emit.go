package mcp

import (
	"encoding/json"
	"math"
	"strconv"
	"sync"
)

// emitter sends what a tool tells before its result, as far as the client
// asked to hear it.
type emitter struct {
	// fixed at creation
	send  func(Frame) error
	tool  string
	token []byte // the client's progress token; nil when it gave none
	level int32  // the least severe level to send; 0 for none

	mu      sync.Mutex
	stopped bool
	told    bool
	last    float64
}

// emitter returns the emitter of a call; nil when nothing of what the tool
// tells would be sent.
func (c *call) emitter(tool string, level int32) *emitter {
	if c.origin.emit == nil || len(c.meta.progressToken) == 0 && level == 0 {
		return nil
	}
	return &emitter{send: c.origin.emit, tool: tool, token: c.meta.progressToken, level: level}
}

// stop makes the emitter drop what comes too late: nothing may follow the answer.
func (e *emitter) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
}

// Progress sends notifications/progress (2026-07-28 basic/patterns/progress).
// The value must grow with each, so that one which does not is dropped.
func (e *emitter) Progress(done float64, total *float64, message string) {
	if len(e.token) == 0 || !finite(done) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped || e.told && done <= e.last {
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
	// A failure to send shows when the answer is sent, or ends the context.
	_ = e.send(notification("notifications/progress", b))
}

// Log sends notifications/message (2026-07-28 server/utilities/logging).
func (e *emitter) Log(level, message string, fields json.RawMessage) {
	severity := severityOf(level)
	if e.level == 0 || severity < e.level {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return
	}
	b := appendText(nil, "level", LogLevels[severity-1])
	b = appendText(b, "logger", e.tool)
	if b = appendMember(b, "data"); isObject(fields) {
		b = appendText(append(b, '{'), "message", message)
		b = append(appendValue(b, "fields", fields), '}')
	} else {
		b = appendString(b, message)
	}
	_ = e.send(notification("notifications/message", b))
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func appendNumber(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }
