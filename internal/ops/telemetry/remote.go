package telemetry

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// Remote is the span of another process that a request comes from, as that process
// says. The zero Remote is none.
type Remote struct{ of trace.SpanContext }

// Valid reports whether there is one.
func (r Remote) Valid() bool { return r.of.IsValid() }

// TraceID returns the id of its trace in hexadecimal, "" for none.
func (r Remote) TraceID() string {
	if !r.Valid() {
		return ""
	}
	return r.of.TraceID().String()
}

// stateBytes is the most of a tracestate that is carried on: what W3C Trace Context
// section 3.3.1.5 has everybody carry at least.
const stateBytes = 512

// Parent reads the fields traceparent and tracestate, of a header or of _meta,
// which are untrusted. By W3C Trace Context (section 3.2.2) there is no Remote where
// the first has any mistake; where the second has one, or is longer than 512 bytes,
// it alone is left out.
func Parent(traceparent, tracestate string) Remote {
	config, ok := parseParent(traceparent)
	if !ok {
		return Remote{}
	}
	if len(tracestate) <= stateBytes {
		// A tracestate with a mistake is dropped, as section 4.3 has it.
		config.TraceState, _ = trace.ParseTraceState(tracestate)
	}
	return Remote{trace.NewSpanContext(config)}
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
func parseParent(s string) (config trace.SpanContextConfig, ok bool) {
	if len(s) < parentBytes || len(s) > 2*parentBytes || s[traceAt-1] != '-' || s[spanAt-1] != '-' || s[flagsAt-1] != '-' {
		return config, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], s[:traceAt-1]) || version[0] == 0xff {
		return config, false
	}
	if len(s) > parentBytes && (version[0] == 0 || s[parentBytes] != '-') {
		return config, false
	}
	if !lowerHex(config.TraceID[:], s[traceAt:spanAt-1]) || !lowerHex(config.SpanID[:], s[spanAt:flagsAt-1]) || !lowerHex(flags[:], s[flagsAt:parentBytes]) {
		return config, false
	}
	// The flags that are known: sampled, and that the trace id is random.
	config.TraceFlags = trace.TraceFlags(flags[0]) & (trace.FlagsSampled | randomFlag)
	config.Remote = true
	return config, config.TraceID.IsValid() && config.SpanID.IsValid()
}

// randomFlag is the second flag of Trace Context Level 2.
const randomFlag = trace.TraceFlags(0x02)

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
