package upstream

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// Options are what connections are made with. Version, Transport, Value and Logger are
// required.
type Options struct {
	// Version is that of this server, which says so.
	Version string
	// Transport reaches hosts under a grant.
	Transport func(grant.HTTP) http.RoundTripper
	// Value puts text together that may hold secrets.
	Value func(context.Context, grant.Value) (string, error)
	// Environment returns the variables that every program gets, as NAME=value, and how many
	// servers stand before this one, each started as the program of the one before it.
	// Programs of [MaxDepth] or more are not started: they would be those of a server that is
	// its own upstream. Nil is neither.
	Environment func() (env []string, depth int)
	// Propagate returns the traceparent (W3C Trace Context) that the requests of a context
	// carry on in _meta, "" for none. Nil has none carried on. There is no tracestate: it
	// would be text of whoever calls.
	Propagate func(context.Context) (traceparent string)
	// Redact hides the values of secrets in what a program says, before a part of it is
	// taken. Nil hides nothing.
	Redact func(text string) string
	// Supervisor is the process that runs programs (see package supervisor).
	Supervisor []string
	// Changed is told of what the server says of itself: that a list has changed, by its
	// method, and of a resource its URI. It must not block.
	Changed func(method, uri string)
	Logger  *slog.Logger
}

// MaxDepth bounds the depth of [Options].Environment, and DepthVariable is the one by which a program is told.
const (
	MaxDepth      = 4
	DepthVariable = "MCPD_UPSTREAM_DEPTH"
)
