package pipeline

import (
	"context"
	"log/slog"

	"github.com/mcpd/mcpd/call"
)

// logUnkept tells the operator that who comes with the state of the call again gets no
// answer. The caller of this leg has its own.
func (x *execution) logUnkept(ctx context.Context, err error) {
	x.pipeline.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the answer of a call is not kept",
		slog.String(x.req.Kind.String(), x.entry.Address), slog.String("call_id", x.id),
		slog.String("request_id", x.req.Caller.Agent.RequestID), slog.String("cause", err.Error()))
}

// logFailure tells the operator what the caller is not told.
func (x *execution) logFailure(ctx context.Context, err *call.Error) {
	called := x.req.Name
	switch {
	case x.entry != nil:
		called = x.entry.Address // without what a URI gives a template
	case x.req.Kind == call.Resources:
		called = "" // what nothing has may be made of such values, too
	}
	attrs := []slog.Attr{
		slog.String(x.req.Kind.String(), called), slog.String("call_id", x.id),
		slog.String("request_id", x.req.Caller.Agent.RequestID), slog.String("code", string(err.Code)),
	}
	if parent := x.place.Parent(); parent != "" {
		attrs = append(attrs, slog.String("parent_id", parent))
	}
	if err.DeniedBy != "" {
		attrs = append(attrs, slog.String("denied_by", err.DeniedBy))
	}
	level := slog.LevelInfo
	if cause := err.Cause; cause != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("cause", x.hidden(cause.Error())))
	}
	x.pipeline.options.Logger.LogAttrs(ctx, level, "a call failed", attrs...)
}
