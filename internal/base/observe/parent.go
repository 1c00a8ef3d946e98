package observe

import (
	"encoding/hex"
)

// SpanContext is the ids of a span, maybe of another process. The zero SpanContext is none.
type SpanContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
	// State is a tracestate. It is untrusted, and has 512 bytes at most.
	State string
	// Remote says that the span is of another process.
	Remote bool
}

// Valid reports whether there is a span.
func (c SpanContext) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// Trace returns the id of its trace in hexadecimal, "" for none.
func (c SpanContext) Trace() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}

// Traceparent returns the field traceparent of a request that comes from the span.
func (c SpanContext) Traceparent() string {
	text := make([]byte, 0, parentBytes)
	text = append(text, "00-"...)
	text = append(hex.AppendEncode(text, c.TraceID[:]), '-')
	text = append(hex.AppendEncode(text, c.SpanID[:]), '-')
	text = hex.AppendEncode(text, []byte{c.Flags & knownFlags})
	return string(text)
}

// stateBytes is the most of a tracestate that is carried on: what W3C Trace Context
// section 3.3.1.5 has everybody carry at least.
const stateBytes = 512

// knownFlags are the flags sampled, and that the trace id is random (Trace Context Level 2).
const knownFlags = 0x01 | 0x02

// Parent reads the fields traceparent and tracestate, of a header or of _meta, which are
// untrusted. By W3C Trace Context (section 3.2.2) there is no span if the first has any
// mistake; if the second has one, or is longer than 512 bytes, it alone is left out.
func Parent(traceparent, tracestate string) SpanContext {
	c, ok := parseParent(traceparent)
	if !ok {
		return SpanContext{}
	}
	if len(tracestate) <= stateBytes {
		c.State = tracestate // the recorder drops one with a mistake, as section 4.3 has it
	}
	return c
}

// The places of the members of a traceparent: "00-<32>-<16>-<2>".
const (
	traceAt     = 3
	spanAt      = traceAt + 32 + 1
	flagsAt     = spanAt + 16 + 1
	parentBytes = flagsAt + 2
)

// parseParent reads a traceparent. One of a later version may have more behind
// another dash, up to as much again.
func parseParent(s string) (c SpanContext, ok bool) {
	if len(s) < parentBytes || len(s) > 2*parentBytes || s[traceAt-1] != '-' || s[spanAt-1] != '-' || s[flagsAt-1] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], s[:traceAt-1]) || version[0] == 0xff {
		return c, false
	}
	if len(s) > parentBytes && (version[0] == 0 || s[parentBytes] != '-') {
		return c, false
	}
	if !lowerHex(c.TraceID[:], s[traceAt:spanAt-1]) || !lowerHex(c.SpanID[:], s[spanAt:flagsAt-1]) || !lowerHex(flags[:], s[flagsAt:parentBytes]) {
		return c, false
	}
	c.Flags, c.Remote = flags[0]&knownFlags, true
	return c, c.Valid()
}

// lowerHex decodes hexadecimal digits, which must be in lower case.
func lowerHex(into []byte, s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	n, err := hex.Decode(into, []byte(s))
	return err == nil && n == len(into)
}
