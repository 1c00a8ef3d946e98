package call

// Trace is where a request comes from, as its caller says (W3C Trace Context): the
// fields traceparent and tracestate of its _meta, and of the headers that carried it.
// Nothing in it is proved, and what has a mistake counts for nothing.
type Trace struct {
	Parent, State               string
	CarrierParent, CarrierState string
}
