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

// logEnd is one line for each call that has ended: for one that failed what its caller is
// not told, for one that has a result at the level debug. It costs nothing where the
// operator reads no such lines.
func (x *execution) logEnd(ctx context.Context, err *call.Error) {
	logger, level := x.pipeline.options.Logger, slog.LevelDebug
	switch {
	case err != nil && err.Cause != nil:
		level = slog.LevelWarn
	case err != nil:
		level = slog.LevelInfo
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	called := x.req.Name
	switch {
	case x.entry != nil:
		called = x.entry.Address // without what a URI gives a template
	case x.req.Kind == call.Resources:
		called = "" // what nothing has may be made of such values, too
	}
	caller := &x.req.Caller
	attrs := make([]slog.Attr, 0, 9)
	attrs = append(attrs, slog.String(x.req.Kind.String(), called), slog.String("call_id", x.id), slog.String("request_id", caller.Agent.RequestID))
	if err != nil {
		attrs = append(attrs, slog.String("code", string(err.Code)))
	}
	if parent := x.place.Parent(); parent != "" {
		attrs = append(attrs, slog.String("parent_id", parent))
	}
	if err != nil && err.DeniedBy != "" {
		attrs = append(attrs, slog.String("denied_by", err.DeniedBy))
	}
	if err != nil && err.Cause != nil {
		attrs = append(attrs, slog.String("cause", x.hidden(err.Cause.Error())))
	}
	attrs = append(attrs, slog.String("principal", caller.Principal.ID))
	if caller.Principal.Issuer != "" {
		attrs = append(attrs, slog.String("issuer", caller.Principal.Issuer))
	}
	if err == nil {
		attrs = append(attrs, slog.Duration("took", x.pipeline.options.Now().Sub(x.began)))
		logger.LogAttrs(ctx, level, "a call succeeded", attrs...)
		return
	}
	logger.LogAttrs(ctx, level, "a call failed", attrs...)
}
