package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a call or a part of one. The zero Span is of what is not traced: its
// methods do nothing, and allocate nothing. A span is used by one goroutine at a
// time, and its children by others.
type Span struct {
	span   trace.Span
	tracer *Tracer
	method string // of a call; empty for a part
}

// Key is the name of an attribute.
type Key string

// The attributes of a call and of its parts. Values are cut at 256 characters. None is
// for what a caller or a script chose.
const (
	// Policy is the name of a policy or a limit.
	Policy Key = "mcpd.policy.name"
	// Decision is what the policies came to: [Allowed] or [Denied].
	Decision Key = "mcpd.policy.decision"
	// PolicyOn is [OnResult] where policies judge what a call returned, and absent where
	// they judge the call.
	PolicyOn Key = "mcpd.policy.on"
	// Revision is that of the snapshot that serves a call.
	Revision Key = "mcpd.snapshot.revision"
)

// OnResult is the value of [PolicyOn].
const OnResult = "result"

// The values of [Decision].
const (
	Allowed = "allow"
	Denied  = "deny"
)

// IDs returns the ids of the trace and of the span in hexadecimal, which are empty for
// the zero Span.
func (s Span) IDs() (trace, span string) {
	if s.span == nil {
		return "", ""
	}
	of := s.span.SpanContext()
	return of.TraceID().String(), of.SpanID().String()
}

// describe sets what is known of a call when it begins.
func (s Span) describe(c Call) {
	set := make([]attribute.KeyValue, 0, 8)
	for _, a := range [...]struct{ key, value string }{
		{"mcp.method.name", c.Method}, {"mcpd.call.id", c.ID}, {"mcpd.request.id", c.RequestID}, {"mcpd.call.via", c.Via},
	} {
		if a.value != "" {
			set = append(set, attribute.String(a.key, a.value))
		}
	}
	s.span.SetAttributes(set...)
	if c.Carrier.Valid() && c.Parent.Valid() {
		s.span.AddLink(trace.Link{SpanContext: c.Carrier.of})
	}
}

// Found tells what a call is of, by its name in the files. Without it the span has
// no name but that of its method: what callers ask for is not told.
func (s Span) Found(name string) {
	if s.span != nil {
		s.found(name)
	}
}

func (s Span) found(name string) {
	switch s.method {
	case "tools/call":
		s.span.SetAttributes(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name))
	case "prompts/get":
		s.span.SetAttributes(attribute.String("gen_ai.prompt.name", name))
	default:
		s.span.SetAttributes(attribute.String("mcpd.item.name", name))
		return
	}
	s.span.SetName(s.method + " " + name)
}

// Child begins a part that happens here, such as "policy" or "script".
func (s Span) Child(name string) Span {
	if s.span == nil {
		return Span{}
	}
	return s.part(name, trace.SpanKindInternal)
}

// Client begins a part that asks something of another process.
func (s Span) Client(name string) Span {
	if s.span == nil {
		return Span{}
	}
	return s.part(name, trace.SpanKindClient)
}

func (s Span) part(name string, kind trace.SpanKind) Span {
	_, child := s.tracer.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name, trace.WithSpanKind(kind))
	if !child.IsRecording() {
		return Span{}
	}
	return Span{span: child, tracer: s.tracer}
}

// In returns a context by which [Tracer.Inject], logs and calls that are made from
// here name this span; the context given, when nothing is traced.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Attr sets an attribute.
func (s Span) Attr(key Key, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Fail marks the span as failed with a code: one of the five of the RFC for a call,
// or that of a host error. Messages are not told.
func (s Span) Fail(code string) {
	if s.span != nil {
		s.fail(code)
	}
}

func (s Span) fail(code string) {
	kind := code
	if s.method == "tools/call" {
		if kind = "tool_error"; code == "TOOL_NOT_FOUND" {
			kind = "-32602" // the JSON-RPC error that it is answered with
		}
		s.span.SetAttributes(attribute.String("mcpd.error.code", code))
	}
	s.span.SetStatus(codes.Error, "")
	s.span.SetAttributes(attribute.String("error.type", kind))
}

// End ends the span. What is told of it afterwards is dropped.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}
