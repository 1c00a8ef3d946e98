package engine

import (
	"context"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/gofunc"
)

// CallerFromContext returns who calls a tool that is written in Go, from the context that
// its function was given or one made of that: the principal, which authentication has
// proved, the agent, which is claimed, and where the request came in. It is a copy.
//
// A caller that nothing was proved about has the principal [identity.Anonymous], whose Kind
// is [identity.KindAnonymous]; so has the caller of any other context, for which ok is
// false. Compare Kind and Issuer beside ID: ids of different issuers may be the same.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	return gofunc.CallerFromContext(ctx)
}
