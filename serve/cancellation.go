package serve

import (
	"context"
	"errors"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/mcp"
	"github.com/mcpd/mcpd/internal/tasks"
)

// cancellation says who had a call end whose context has ended for a cause, and
// why. It is the same on every transport: what has no cause of its own is a
// connection that was closed.
func cancellation(cause error) engine.Cancellation {
	if client, ok := errors.AsType[*mcp.Cancelled](cause); ok {
		return engine.Cancellation{By: engine.CancelledByClient, Reason: client.Reason}
	}
	switch {
	case errors.Is(cause, tasks.ErrCancelled):
		return engine.Cancellation{By: engine.CancelledByClient}
	case errors.Is(cause, mcp.ErrSessionEnded):
		return engine.Cancellation{By: engine.CancelledBySession, Reason: "the session has ended"}
	case errors.Is(cause, errCut), errors.Is(cause, tasks.ErrStopped):
		return engine.Cancellation{By: engine.CancelledByServer, Reason: "the server is shutting down"}
	case errors.Is(cause, context.Canceled):
		return engine.Cancellation{By: engine.CancelledByConnection, Reason: "the connection was closed"}
	}
	return engine.Cancellation{}
}
