package kv

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/scripting"
)

// Broker keeps values. It is safe for concurrent use.
type Broker struct {
	open   func() (state.Store, error)
	logger *slog.Logger
}

// New returns a broker over a store that open returns: once for each operation,
// so that a store which nobody needs is never opened. What the operator should
// know goes to the logger.
func New(open func() (state.Store, error), logger *slog.Logger) *Broker {
	return &Broker{open: open, logger: logger}
}

// Prefix is how the operations of a broker begin.
const Prefix = "kv."

// Do carries out one operation (package scripting) in a space of [SpaceOf].
// A refusal is a [*scripting.HostError].
func (b *Broker) Do(ctx context.Context, g grant.KV, space, op string, payload []byte) ([]byte, error) {
	var r request
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, refuse(scripting.Invalid, "the request cannot be read")
	}
	o := operation{grant: g, space: space, request: r}
	run, known := map[string]func(*operation) (any, error){
		"get": (*operation).get, "put": (*operation).put, "delete": (*operation).remove,
		"cas": (*operation).cas, "list": (*operation).list, "incr": (*operation).incr,
	}[strings.TrimPrefix(op, Prefix)]
	if !known {
		return nil, refuse(scripting.NotGranted, "kept values have no operation "+op)
	}
	store, err := b.open()
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	o.store = store
	answer, err := run(&o)
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	return json.Marshal(answer)
}

// failed returns what a script is told of an error.
func (b *Broker) failed(ctx context.Context, err error) error {
	var refusal *scripting.HostError
	var full *state.FullError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, state.ErrRoom):
		return refuse(scripting.TooLarge, "there is no room for more: the grant bounds the keys, and the bytes of all keys and values")
	}
	b.logger.WarnContext(ctx, "a value cannot be kept", slog.String("error", err.Error()))
	if errors.As(err, &full) {
		return refuse(scripting.Unavailable, "the server has no room for more values")
	}
	return refuse(scripting.Unavailable, "the server cannot keep values now")
}
