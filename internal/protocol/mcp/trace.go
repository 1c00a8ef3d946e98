package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "net/http"

// TraceOf returns what the headers of a request say; nil headers say nothing.
func TraceOf(h http.Header) (t call.Trace) {
	if parents := h["Traceparent"]; len(parents) == 1 {
		t.CarrierParent = parents[0]
		if states := h["Tracestate"]; len(states) == 1 {
			t.CarrierState = states[0]
		}
	}
	return t
}

// trace returns what the call says of where it comes from.
// The headers of a connection that carries many requests are of none of them.
func (c *request) trace() (t call.Trace) {
	carrier := c.origin.sent
	if c.origin.mirrored {
		carrier = c.origin.peer.Headers
	}
	t = TraceOf(carrier)
	if len(c.meta.traceparent) <= maxTraceParent {
		t.Parent, _ = jsontext.Text(c.meta.traceparent)
	}
	if t.Parent != "" && len(c.meta.tracestate) <= maxTraceState {
		t.State, _ = jsontext.Text(c.meta.tracestate)
	}
	return t
}

// What is longer, as JSON, is not looked at: nothing that has a meaning is.
const (
	maxTraceParent = 128
	maxTraceState  = 1 << 10
)
