// Package kv stores values for scripts in a [state.Pairs].
//
// A [Broker] carries out the operations of one grant in one space. [SpaceName] builds the name
// of the space from the grant and the subject. Arguments of the script are not part of it, so
// that no key can address another space. The broker checks keys, values and lifetimes; the
// store has the capacity and the clock.
package kv

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Broker carries out kv operations. It is safe for concurrent use.
type Broker struct {
	open   func() (state.Store, error)
	logger *slog.Logger
}

// New returns a broker for the store that open returns. It calls open for each operation, so
// that an unused store is never opened. The logger receives messages for the operator.
func New(open func() (state.Store, error), logger *slog.Logger) *Broker {
	return &Broker{open: open, logger: logger}
}

// Prefix is the prefix of the operations.
const Prefix = "kv."

// Do carries out one operation (package scripting) in a space named by [SpaceName]. Refusals
// are [*scripting.HostError].
func (b *Broker) Do(ctx context.Context, g grant.KV, space, op string, payload []byte) ([]byte, error) {
	var r request
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, newHostError(scripting.Invalid, "the request cannot be read")
	}
	o := operation{grant: g, space: space, request: r}
	run, known := map[string]func(*operation) (any, error){
		"get": (*operation).get, "put": (*operation).put, "delete": (*operation).remove,
		"cas": (*operation).cas, "list": (*operation).list, "incr": (*operation).incr,
	}[strings.TrimPrefix(op, Prefix)]
	if !known {
		return nil, newHostError(scripting.NotGranted, "kv has no operation "+op)
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

func (b *Broker) failed(ctx context.Context, err error) error {
	var hostErr *scripting.HostError
	var full *state.FullError
	switch {
	case errors.As(err, &hostErr):
		return hostErr
	case errors.Is(err, state.ErrRoom):
		return newHostError(scripting.TooLarge, "the grant allows no more keys, or no more bytes of keys and values")
	}
	b.logger.WarnContext(ctx, "kv operation failed", slog.String("error", err.Error()))
	if errors.As(err, &full) {
		return newHostError(scripting.Unavailable, "the server cannot store more values")
	}
	return newHostError(scripting.Unavailable, "the server cannot store values now")
}

// Subject is the script that runs, and its caller.
type Subject struct {
	Kind, Name string
	// Caller is zero if there is none.
	Caller identity.Caller
}

// SpaceName returns the name of the space of a grant for a subject. Different spaces have
// different names. The error is a [*scripting.HostError]: the grant needs something that the
// call lacks.
func SpaceName(g grant.KV, r Subject) (string, error) {
	switch g.Scope {
	case grant.ScopeTool:
		return encodeParts(g.Scope, g.Name, r.Kind, r.Name), nil
	case grant.ScopeServer:
		return encodeParts(g.Scope, g.Name), nil
	case grant.ScopeSession:
		if r.Caller.Source.Session == "" {
			return "", newHostError(scripting.Invalid, "the scope is session, and this call has no session")
		}
		return encodeParts(g.Scope, g.Name, r.Caller.Source.Session), nil
	case grant.ScopePrincipal:
		p := r.Caller.Principal
		if p.ID == "" && p.Kind == "" {
			return "", newHostError(scripting.Invalid, "the scope is principal, and this call has no principal")
		}
		return encodeParts(g.Scope, g.Name, p.ID, string(p.Kind), p.Issuer), nil
	}
	return "", newHostError(scripting.NotGranted, "the grant has no scope")
}

// encodeParts encodes parts uniquely, each with its length.
func encodeParts(parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return string(text)
}

func newHostError(code, message string) error {
	return &scripting.HostError{Code: code, Message: message}
}
