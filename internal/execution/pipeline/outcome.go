package pipeline

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/content"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

// result turns what a body returned into the result of the call.
func (x *execution) result(r *scripting.Result) (call.Result, *call.Error) {
	if x.entry.Output != nil {
		return x.structured(r)
	}
	switch r.Kind {
	case scripting.Nothing:
		return call.Result{Value: orNull(nil), Content: content.None()}, nil
	case scripting.Content:
		result := call.Result{Value: orNull(r.JSON), Content: r.Content, Rich: true}
		if x.entry.Upstream != "" && r.JSON != nil {
			result.Structured = r.JSON // a server may return it without a schema
		}
		return result, nil
	case scripting.Text:
		return call.Result{Value: r.JSON, Content: content.Text(r.JSON)}, nil
	default:
		if blocks := reply.PlainBlocks(r.JSON); blocks != nil {
			return call.Result{Value: orNull(nil), Content: blocks, Rich: true}, nil
		}
		return call.Result{Value: r.JSON, Content: content.Value(r.JSON)}, nil
	}
}

// structured is result for a tool that declares its output: the value must fit.
func (x *execution) structured(r *scripting.Result) (call.Result, *call.Error) {
	value := orNull(r.JSON)
	if !x.entry.Output.Sure() {
		if violations := x.entry.Output.Value(value); len(violations) > 0 {
			broken := x.brokenOutput(r, violations)
			if x.entry.Upstream == "" && onlyBlocks(r) {
				broken.Message += "; a tool with outputs returns content beside its value: content.structured(value, blocks)"
			}
			return call.Result{}, x.traced(broken)
		}
	}
	result := call.Result{Value: value, Structured: value}
	if r.Kind == scripting.Content {
		result.Content, result.Rich = r.Content, true
		return result, nil
	}
	result.Content = content.Value(value)
	return result, nil
}

// onlyBlocks reports whether a body returned content without a value beside it.
func onlyBlocks(r *scripting.Result) bool {
	return r.Kind == scripting.Content && r.JSON == nil || reply.PlainBlocks(r.JSON) != nil
}

func (x *execution) brokenOutput(r *scripting.Result, violations []schema.Violation) *call.Error {
	x.spoke = true // by the names of members
	at := []scripting.Frame{{Function: x.entry.Name, Range: x.entry.Where}}
	wrong := schema.Sentence(violations)
	if r.Kind == scripting.Nothing && x.entry.Upstream == "" {
		wrong = "the body returned nothing; its last line must return an object with the declared outputs"
	}
	return failed(call.ExecutionError, &scripting.Failure{Message: wrong, Stack: at}, "the tool's result does not fit its output schema: %s", wrong)
}

// failure turns the way a body failed into the error of the call.
func (x *execution) failure(ctx context.Context, f *scripting.Failure) *call.Error {
	hidden := *f
	f = &hidden
	f.Message = x.hide.Hide(f.Message, x.secrets())
	if f.Details != nil {
		f.Details = x.pipeline.options.Brokers.Secrets.RedactJSON(x.hide.HideJSON(f.Details, x.secrets()))
	}
	switch f.Kind {
	case scripting.Timeout:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return x.withDetails(x.timedOut(f), f)
	case scripting.Canceled:
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return failed(call.ExecutionError, f, "the call was canceled")
	case scripting.HostPanic:
		return failed(call.ExecutionError, f, "the %s failed inside the server", x.entry.Kind)
	}
	return x.thrown(f)
}

// withDetails adds to an error what a body in Go tells of how far it came.
func (x *execution) withDetails(err *call.Error, f *scripting.Failure) *call.Error {
	if f.Details != nil {
		err.Details = f.Details
		if f.Message != "" {
			err.Message += "\n" + f.Message
		}
	}
	return err
}

// thrown turns what a body threw into the error of the call.
func (x *execution) thrown(f *scripting.Failure) *call.Error {
	x.spoke = true
	err := failed(call.ExecutionError, f, "%s", f.Message)
	switch f.Kind {
	case scripting.RPCError:
		err.RPC = &call.RPCError{Code: f.RPCCode, Message: f.Message, Data: f.Details}
	case scripting.CapabilityError:
		err.Required = f.RequiredCapabilities()
	case scripting.ToolError:
		err.Details = f.Details
	}
	return err
}

// traced adds to an error where the body failed, for a caller who may know.
func (x *execution) traced(err *call.Error) *call.Error {
	if x.catalog.Server.ExposeTraces {
		err.Trace = x.hide.Hide(scripting.Traces(scripting.StackOf(err), ""), x.secrets())
	}
	return err
}

func orNull(value []byte) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}

// encode encodes plain data, which cannot fail.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		return orNull(nil)
	}
	return encoded
}
