package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpd/mcpd/internal/content"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/scripting"
)

// result turns what a body returned into the result of the call.
func (x *execution) result(r *scripting.Result) (Result, *CallError) {
	if x.entry.Output != nil {
		return x.structured(r)
	}
	switch r.Kind {
	case scripting.Nothing:
		return Result{Value: orNull(nil), Content: content.None()}, nil
	case scripting.Content:
		return Result{Value: orNull(r.JSON), Content: r.Content, Rich: true}, nil
	case scripting.Text:
		return Result{Value: r.JSON, Content: content.Text(r.JSON)}, nil
	default:
		return Result{Value: r.JSON, Content: content.Value(r.JSON)}, nil
	}
}

// structured is result for a tool that declares its output: the value must fit.
func (x *execution) structured(r *scripting.Result) (Result, *CallError) {
	value := orNull(r.JSON)
	if !x.entry.Output.Sure() {
		if violations := x.entry.Output.Value(value); len(violations) > 0 {
			return Result{}, x.traced(x.brokenOutput(violations))
		}
	}
	result := Result{Value: value, Structured: value}
	if r.Kind == scripting.Content {
		result.Content, result.Rich = r.Content, true
		return result, nil
	}
	result.Content = content.Value(value)
	return result, nil
}

func (x *execution) brokenOutput(violations []Violation) *CallError {
	at := []scripting.Frame{{Function: x.entry.Name, Range: x.entry.Where}}
	return failed(ExecutionError, &scripting.Failure{Message: schema.Sentence(violations), Stack: at}, "the tool's result does not fit its output schema: %s", schema.Sentence(violations))
}

// failure turns the way a body failed into the error of the call.
func (x *execution) failure(ctx context.Context, f *scripting.Failure) *CallError {
	hidden := *f
	f = &hidden
	f.Message = x.server.brokers.Secrets.Redact(x.hide.Hide(f.Message))
	if f.Details != nil {
		f.Details = x.server.brokers.Secrets.RedactJSON(x.hide.HideJSON(f.Details))
	}
	switch f.Kind {
	case scripting.Timeout:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return x.timedOut(f)
	case scripting.Canceled:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return failed(ExecutionError, f, "the call was canceled")
	case scripting.HostPanic:
		return failed(ExecutionError, f, "the %s failed inside the server", x.entry.Kind)
	case scripting.RPCError:
		err := failed(ExecutionError, f, "%s", f.Message)
		err.RPC = &RPCError{Code: f.RPCCode, Message: f.Message, Data: f.Details}
		return err
	case scripting.CapabilityError:
		err := failed(ExecutionError, f, "%s", f.Message)
		err.Required = f.RequiredCapabilities()
		return err
	case scripting.ToolError:
		err := failed(ExecutionError, f, "%s", f.Message)
		err.Details = f.Details
		return err
	default:
		return failed(ExecutionError, f, "%s", f.Message)
	}
}

// traced adds to an error where the body failed, for a caller who may know.
func (x *execution) traced(err *CallError) *CallError {
	if x.snap.catalog.Server.ExposeTraces {
		err.Trace = x.hide.Hide(x.server.brokers.Secrets.Redact(scripting.Traces(err.Stack(), "")))
	}
	return err
}

// Stack returns the places in the author's files at which a body failed, innermost first, or
// that of its tool where its result did not fit. It is empty for errors that no body made.
func (e *CallError) Stack() []scripting.Frame {
	var body *scripting.Failure
	if errors.As(e.cause, &body) {
		return body.Stack
	}
	return nil
}

func orNull(value []byte) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
