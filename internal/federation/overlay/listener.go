package overlay

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/internal/host"
)

// The bounds of what a server tells of one call before it ends or asks: how many things, and
// the bytes of their texts. Of what is more one warning tells.
const (
	maxEvents = 10_000
	maxWords  = 1 << 20
)

// listener passes on what a server tells of a call while that runs. What it says is
// hidden, bounded and logged as what bodies say.
type listener struct {
	ctx  context.Context // of the leg: what is told belongs to its span
	host *host.Call

	mu    sync.Mutex
	ended bool
	told  int
	words int  // of what was told, in bytes
	cut   bool // something was not told
}

// end has nothing more be told.
func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// tell passes one thing on.
func (l *listener) tell(op string, payload any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told++; l.told > maxEvents {
		l.leave()
		return
	}
	l.pass(op, payload)
}

// pass passes one thing on while the call runs. Its caller holds mu.
func (l *listener) pass(op string, payload any) {
	encoded, err := json.Marshal(payload)
	if l.ended || err != nil {
		return // a number that is none, or fields that are no JSON
	}
	_, _ = l.host.Do(l.ctx, 0, op, encoded) // nobody is told of a message that is none
}

// leave notes that something is not told. Its caller holds mu.
func (l *listener) leave() {
	if !l.cut {
		l.cut = true
		l.pass("log", map[string]any{"level": "warn", "message": "the server behind this tells more of the call than is passed on: some of it is left out"})
	}
}

// fits counts bytes that are to be told, and reports whether they may be.
func (l *listener) fits(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.words+n > maxWords {
		l.leave()
		return false
	}
	l.words += n
	return true
}

// Progress passes on how far the call is, without its words where these are too many.
func (l *listener) Progress(done float64, total *float64, message string) {
	if message = clipped(l.host.Secrets.Redact(message)); !l.fits(len(message)) {
		message = ""
	}
	l.tell("progress", map[string]any{"done": done, "total": total, "message": message})
}

// levels are the levels of MCP (2026-07-28 server/utilities/logging).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log passes on a record. One session with a server has one level for the calls of all, so
// that this call may not have asked for it.
func (l *listener) Log(level, message string, fields json.RawMessage) {
	if !slices.Contains(levels, level) || level == "debug" && !l.host.Debug {
		return
	}
	message = clipped(l.host.Secrets.Redact(message))
	if !l.fits(len(message) + len(fields)) {
		return
	}
	record := map[string]any{"level": level, "message": message}
	if isObject(fields) {
		record["fields"] = fields
	} else if fields != nil {
		record["fields"] = map[string]any{"data": fields}
	}
	l.tell("log", record)
}
