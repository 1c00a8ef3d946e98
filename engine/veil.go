package engine

import (
	"encoding/json"
	"log/slog"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// Veil hides the secrets of one server in logs that are begun before it is made, such
// as that of its executor: values that were resolved, and their forms in base64,
// hexadecimal, URLs, HTML and JSON. The zero Veil hides nothing until it is the one of
// [Options]. It is safe for concurrent use, and must not be copied.
type Veil struct {
	// over hides what is to be hidden. It is stored once.
	over atomic.Pointer[secrets.Store]
}

// Logger returns a logger that writes what another would, without secrets. What it
// is told is looked at when a record is written.
func (v *Veil) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(redact.NewHandler(l.Handler(), drawn{v}))
}

// drawn is a veil as handlers see it.
type drawn struct{ *Veil }

// Redact hides the secrets in a text.
func (d drawn) Redact(text string) string {
	if store := d.over.Load(); store != nil {
		return store.Redact(text)
	}
	return text
}

// RedactJSON hides the secrets in a JSON value.
func (d drawn) RedactJSON(raw json.RawMessage) json.RawMessage {
	if store := d.over.Load(); store != nil {
		return store.RedactJSON(raw)
	}
	return raw
}
