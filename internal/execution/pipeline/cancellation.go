package pipeline

import (
	"context"
	"log/slog"
	"math"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// maxCancelReason is how much is told of the reason of a cancellation, in bytes.
const maxCancelReason = 1 << 10

// shownReason returns a reason as one line that shows what it holds, cut where it is long.
func shownReason(text string) string {
	line := safetext.Line(text, math.MaxInt)
	if len(line) > maxCancelReason {
		line = truncate.Start(line, maxCancelReason-len("…")) + "…"
	}
	return line
}

// noteCancellation finds out who had the call end, and why, where it failed since its
// context has ended. The reason is in the words of a client: secrets and sensitive values
// are taken out of it, and what is not seen is escaped.
func (x *execution) noteCancellation(ctx context.Context, err *call.Error) {
	if x.req.Cancelled == nil || x.cancelled.By != "" || err.Code != call.ExecutionError || ctx.Err() == nil {
		return
	}
	x.cancelled = x.req.Cancelled(context.Cause(ctx))
	x.cancelled.Reason = shownReason(x.hidden(x.cancelled.Reason))
	if x.cancelled.By == "" {
		return
	}
	x.pipeline.options.Logger.LogAttrs(ctx, slog.LevelDebug, "call cancelled",
		slog.String("call_id", x.id), slog.String("request_id", x.req.Caller.Agent.RequestID),
		slog.String("cancelled_by", x.cancelled.By), slog.String("cancel_reason", x.cancelled.Reason))
}
