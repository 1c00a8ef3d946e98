package gofunc

import (
	"context"

	"github.com/mcpd/mcpd/identity"
)

// callerKey is the key of the caller in the context of a function.
type callerKey struct{}

// called is the context of a function, which knows who calls it. It is one of its own as
// contexts of the standard library would make that of the call start a timer.
type called struct {
	context.Context
	caller identity.Caller
}

// Value returns the caller, or a value of the context of the call.
func (c *called) Value(key any) any {
	if key == (callerKey{}) {
		return &c.caller
	}
	return c.Context.Value(key)
}

// CallerFromContext returns who calls the function that has been given ctx, or a context
// made of it: a copy. Where there is none it is anonymous, and ok is false.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	if c, found := ctx.Value(callerKey{}).(*identity.Caller); found {
		return c.Explicit().Clone(), true
	}
	return identity.Caller{}.Explicit(), false
}
