package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

func newError(code call.Code, cause error, format string, args ...any) *call.Error {
	return &call.Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}

func (x *execution) notFound(ctx context.Context) *call.Error {
	if len(x.req.Name) > catalog.MaxAddress(x.req.Kind) {
		return &call.Error{Code: call.ToolNotFound, Message: "no such " + x.req.Kind.String()}
	}
	err := &call.Error{Code: call.ToolNotFound, Message: fmt.Sprintf("no %s named %q", x.req.Kind, x.req.Name)}
	input := catalog.ListInput(x.req.Caller, x.pipeline.options.Now())
	if revision, removed := x.catalog.Removed(ctx, x.req.Kind, x.req.Name, input); removed {
		err.RemovedIn = revision
		if x.catalog.IsUnreachable(x.req.Kind, x.req.Name) {
			err.Message += " now: the server behind it cannot be reached; try again later"
			return err
		}
		err.Message += "; revision " + revision + " removed it"
	}
	err.Nearest = x.catalog.Nearest(ctx, x.req.Kind, x.req.Name, input)
	if err.Nearest != "" {
		err.Message += fmt.Sprintf("; did you mean %q?", err.Nearest)
	}
	return err
}

func invalidInput(item *catalog.Item, violations []schema.Violation) *call.Error {
	err := &call.Error{
		Code: call.InvalidInput, Message: fmt.Sprintf("the arguments do not fit the %s's input schema: %s", item.Kind, schema.FormatViolations(violations)),
		Schema: bytes.Clone(item.Input.Raw()),
	}
	for _, v := range violations {
		err.Violations = append(err.Violations, call.Violation(v))
	}
	return err
}

func overloaded() *call.Error {
	return &call.Error{Code: call.ExecutionError, Message: "the server is overloaded; try again in a second", RetryAfter: time.Second, Overloaded: true}
}

func unavailableError(cause *catalog.UnavailableError) *call.Error {
	e := newError(call.ExecutionError, cause.Err, "%s", cause.Message)
	e.RetryAfter = cause.RetryAfter
	return e
}

func auditError(err error) *call.Error {
	e := newError(call.ExecutionError, err, "the server cannot audit the call; try again in a second")
	e.RetryAfter, e.Overloaded = time.Second, true
	return e
}

func canceled(ctx context.Context) *call.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newError(call.Timeout, ctx.Err(), "the caller's deadline passed")
	}
	return newError(call.ExecutionError, context.Cause(ctx), "the call was canceled")
}

// timedOut returns the error of a script that was interrupted at f, if the position is known.
func (x *execution) timedOut(f *scripting.Failure) *call.Error {
	err := newError(call.Timeout, nil, "the %s did not end within its timeout of %s", x.entry.Kind, x.entry.Timeout)
	if f != nil && len(f.Stack) > 0 {
		err.Cause = f
	}
	return err
}
