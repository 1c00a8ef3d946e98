package federation

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mcpd/mcpd/internal/host"
)

// maxEvents bounds what a server tells of one call before it ends.
const maxEvents = 10_000

// listener passes on what a server tells of a call while that runs. What it says is
// hidden, bounded and logged as what bodies say.
type listener struct {
	ctx  context.Context // of the leg: what is told belongs to its span
	host *host.Call

	mu    sync.Mutex
	ended bool
	told  int
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
	if l.told++; l.ended || l.told > maxEvents {
		return
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		return // a number that is none, or fields that are no JSON
	}
	_, _ = l.host.Do(l.ctx, 0, op, encoded) // nobody is told of a message that is none
}

// Progress passes on how far the call is.
func (l *listener) Progress(done float64, total *float64, message string) {
	l.tell("progress", map[string]any{"done": done, "total": total, "message": clip(l.host.Secrets.Redact(message))})
}

// levels are the levels of MCP by those that bodies have.
var levels = map[string]string{
	"debug": "debug", "info": "info", "notice": "info", "warning": "warn", "error": "error", "critical": "error", "alert": "error", "emergency": "error",
}

// Log passes on a record.
func (l *listener) Log(level, message string, fields json.RawMessage) {
	known := levels[level]
	if known == "" {
		return
	}
	record := map[string]any{"level": known, "message": clip(l.host.Secrets.Redact(message))}
	if isObject(fields) {
		record["fields"] = fields
	} else if fields != nil {
		record["fields"] = map[string]any{"data": fields}
	}
	l.tell("log", record)
}
