package observe

import (
	"encoding/hex"
)

// SpanContext identifies a local or remote span. The zero SpanContext is none.
type SpanContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
	// State is a tracestate. It is untrusted, and at most 512 bytes long.
	State string
	// Remote means that the span belongs to another process.
	Remote bool
}

// Valid reports whether c identifies a span.
func (c SpanContext) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// Trace returns the trace id in hexadecimal, or "".
func (c SpanContext) Trace() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}

// Traceparent returns the traceparent field for a request from the span.
func (c SpanContext) Traceparent() string {
	text := make([]byte, 0, parentBytes)
	text = append(text, "00-"...)
	text = append(hex.AppendEncode(text, c.TraceID[:]), '-')
	text = append(hex.AppendEncode(text, c.SpanID[:]), '-')
	text = hex.AppendEncode(text, []byte{c.Flags & knownFlags})
	return string(text)
}

// stateBytes is the maximum length of a propagated tracestate, the minimum that W3C
// Trace Context section 3.3.1.5 requires.
const stateBytes = 512

// knownFlags are the flags for sampled and for a random trace id (Trace Context Level
// 2).
const knownFlags = 0x01 | 0x02

// Parent parses the untrusted fields traceparent and tracestate of a header or of
// _meta. According to W3C Trace Context (section 3.2.2), an invalid traceparent yields
// no span; a tracestate that is invalid or longer than 512 bytes is dropped.
func Parent(traceparent, tracestate string) SpanContext {
	c, ok := parseParent(traceparent)
	if !ok {
		return SpanContext{}
	}
	if len(tracestate) <= stateBytes {
		c.State = tracestate // the recorder drops an invalid one, as in section 4.3
	}
	return c
}

// Offsets in a traceparent: "00-<32>-<16>-<2>".
const (
	traceAt     = 3
	spanAt      = traceAt + 32 + 1
	flagsAt     = spanAt + 16 + 1
	parentBytes = flagsAt + 2
)

// parseParent parses a traceparent. A later version may have more after another dash,
// up to the same length again.
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

// lowerHex decodes lower-case hexadecimal digits.
func lowerHex(into []byte, s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	n, err := hex.Decode(into, []byte(s))
	return err == nil && n == len(into)
}
