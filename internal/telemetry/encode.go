package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	coltracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// request returns spans, of which there is at least one, as OTLP has them. All are
// of one scope: there is one tracer. Their own resource is not looked at, since the
// SDK mixes the environment of the process into it.
func request(resource []attribute.KeyValue, spans []sdktrace.ReadOnlySpan) *coltracepb.ExportTraceServiceRequest {
	scope := spans[0].InstrumentationScope()
	encoded := make([]*tracepb.Span, len(spans))
	for i, s := range spans {
		encoded[i] = encodeSpan(s)
	}
	return &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: encodeAttributes(resource)},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope:     &commonpb.InstrumentationScope{Name: scope.Name, Version: scope.Version},
			Spans:     encoded,
			SchemaUrl: scope.SchemaURL,
		}},
	}}}
}

func encodeSpan(s sdktrace.ReadOnlySpan) *tracepb.Span {
	of, parent, status := s.SpanContext(), s.Parent(), s.Status()
	trc, id := of.TraceID(), of.SpanID()
	encoded := &tracepb.Span{
		TraceId: trc[:], SpanId: id[:], TraceState: of.TraceState().String(),
		Flags: flags(of.TraceFlags(), parent),
		Name:  valid(s.Name()), Kind: tracepb.Span_SpanKind(s.SpanKind()), // one's constants are the other's
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: encodeAttributes(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes()),
		Links:  encodeLinks(s.Links()),
		Status: &tracepb.Status{},
	}
	if parent.SpanID().IsValid() {
		id := parent.SpanID()
		encoded.ParentSpanId = id[:]
	}
	if status.Code == codes.Error {
		encoded.Status.Code = tracepb.Status_STATUS_CODE_ERROR
	}
	return encoded
}

// flags returns the flags of W3C Trace Context, and whether the other span, of
// which they tell, is of another process.
func flags(own trace.TraceFlags, other trace.SpanContext) uint32 {
	all := uint32(own) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if other.IsRemote() {
		all |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return all
}

func encodeLinks(links []sdktrace.Link) []*tracepb.Span_Link {
	encoded := make([]*tracepb.Span_Link, len(links))
	for i, l := range links {
		trc, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		encoded[i] = &tracepb.Span_Link{TraceId: trc[:], SpanId: id[:], TraceState: l.SpanContext.TraceState().String(), Flags: flags(l.SpanContext.TraceFlags(), l.SpanContext)}
	}
	return encoded
}

func encodeAttributes(attributes []attribute.KeyValue) []*commonpb.KeyValue {
	encoded := make([]*commonpb.KeyValue, len(attributes))
	for i, a := range attributes {
		value := &commonpb.AnyValue_StringValue{StringValue: valid(a.Value.String())} // a Span has no other attributes
		encoded[i] = &commonpb.KeyValue{Key: valid(string(a.Key)), Value: &commonpb.AnyValue{Value: value}}
	}
	return encoded
}

// valid returns a text as UTF-8. Protobuf refuses a whole request for one text
// that is not.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
