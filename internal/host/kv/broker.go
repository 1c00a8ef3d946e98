// Package kv keeps values for scripts, under keys, in a [state.Pairs].
//
// A [Broker] carries out the operations of one grant in one space. [SpaceOf]
// makes the name of the space from the grant and from who runs: what a script
// passes is no part of it, so that no key can name another space. The broker
// checks keys, values and lifetimes; the store has the room and the clock.
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
		return nil, newHostError(scripting.Invalid, "the request cannot be read")
	}
	o := operation{grant: g, space: space, request: r}
	run, known := map[string]func(*operation) (any, error){
		"get": (*operation).get, "put": (*operation).put, "delete": (*operation).remove,
		"cas": (*operation).cas, "list": (*operation).list, "incr": (*operation).incr,
	}[strings.TrimPrefix(op, Prefix)]
	if !known {
		return nil, newHostError(scripting.NotGranted, "kept values have no operation "+op)
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
	var refusal *scripting.HostError
	var full *state.FullError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, state.ErrRoom):
		return newHostError(scripting.TooLarge, "there is no room for more: the grant bounds the keys, and the bytes of all keys and values")
	}
	b.logger.WarnContext(ctx, "a value cannot be kept", slog.String("error", err.Error()))
	if errors.As(err, &full) {
		return newHostError(scripting.Unavailable, "the server has no room for more values")
	}
	return newHostError(scripting.Unavailable, "the server cannot keep values now")
}

// Runner is who runs: a definition, for a caller.
type Subject struct {
	Kind, Name string
	// Caller is the zero Caller of what runs for nobody.
	Caller identity.Caller
}

// SpaceOf returns the name of the space that a grant gives to who runs. No two
// of them have one name. The error is a [*scripting.HostError]: the grant needs
// what the call lacks.
func SpaceName(g grant.KV, r Subject) (string, error) {
	switch g.Scope {
	case grant.ScopeTool:
		return encodeParts(g.Scope, g.Name, r.Kind, r.Name), nil
	case grant.ScopeServer:
		return encodeParts(g.Scope, g.Name), nil
	case grant.ScopeSession:
		if r.Caller.Source.Session == "" {
			return "", newHostError(scripting.Invalid, "the values belong to a session, and this call has none")
		}
		return encodeParts(g.Scope, g.Name, r.Caller.Source.Session), nil
	case grant.ScopePrincipal:
		p := r.Caller.Principal
		if p.ID == "" && p.Kind == "" {
			return "", newHostError(scripting.Invalid, "the values belong to a principal, and this call has none")
		}
		return encodeParts(g.Scope, g.Name, p.ID, string(p.Kind), p.Issuer), nil
	}
	return "", newHostError(scripting.NotGranted, "the grant has no scope")
}

// join returns text that no other parts make: each stands behind its length.
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
