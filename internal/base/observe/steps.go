package observe

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// Step is a part of one call that has ended, such as its policies, its script, a host call, or a
// call that the script has made. It has no values of arguments or results.
type Step struct {
	// Name is the name of the span, such as "tools/call add", "policy" or "http.fetch". For
	// policies it includes the name of the policy that denied the call.
	Name string
	// Depth is 0 for the call itself, and one more for each span around it.
	Depth int
	Began time.Time
	Took  time.Duration
	// Failed is the error code, or "".
	Failed string
}

// MaxSteps bounds the steps that the function of [WithSteps] gets.
const MaxSteps = 1000

// StepReceiver gets the steps of a call whose emitter implements it.
type StepReceiver interface{ Step(Step) }

type stepsKey struct{}

// steps is the position in the spans of a call whose steps are wanted.
type steps struct {
	emit  func(Step)
	count *atomic.Int64
	// depth is the depth of the next span.
	depth int
}

// WithSteps returns a context for one call. emit is called with each of its first [MaxSteps] steps
// when it ends, from any goroutine.
func WithSteps(ctx context.Context, emit func(Step)) context.Context {
	return context.WithValue(ctx, stepsKey{}, steps{emit: emit, count: new(atomic.Int64)})
}

// For returns the tracer for a call in a context: t, or a tracer that also records the steps of
// [WithSteps]. Some contexts allocate when they are asked for a value, so that a call should not ask
// if there can be none.
func (t Tracer) For(ctx context.Context) Tracer {
	if s, ok := ctx.Value(stepsKey{}).(steps); ok {
		return Tracer{stepRecorder{t.recorder, s}}
	}
	return t
}

// stepRecorder records the steps of one call. next records its spans; nil for none.
type stepRecorder struct {
	next  Recorder
	steps steps
}

// openStep is a span that has not ended. It belongs to one goroutine.
type openStep struct {
	Step
	next   Handle // of the next recorder; nil if that has none
	policy string
}

func (r stepRecorder) open(next Handle, name string, depth int) *openStep {
	return &openStep{Step: Step{Name: name, Depth: depth, Began: time.Now()}, next: next}
}

// within returns a context for spans at a depth.
func (r stepRecorder) within(ctx context.Context, depth int) context.Context {
	inner := r.steps
	inner.depth = depth
	return context.WithValue(ctx, stepsKey{}, inner)
}

func (r stepRecorder) Start(ctx context.Context, c Call) (context.Context, Handle) {
	var next Handle
	if r.next != nil {
		ctx, next = r.next.Start(ctx, c)
	}
	return r.within(ctx, r.steps.depth+1), r.open(next, c.Method, r.steps.depth)
}

func (r stepRecorder) Part(of Handle, name string, client bool) Handle {
	parent := of.(*openStep)
	var next Handle
	if parent.next != nil {
		next = r.next.Part(parent.next, name, client)
	}
	return r.open(next, name, parent.Depth+1)
}

// Resume starts no step: its work may outlast the call.
func (r stepRecorder) Resume(ctx context.Context, of SpanContext, name string) (context.Context, Handle) {
	if r.next == nil {
		return ctx, nil
	}
	ctx, next := r.next.Resume(ctx, of, name)
	if next == nil {
		return ctx, nil
	}
	return ctx, &openStep{next: next, Step: Step{Depth: -1}}
}

func (r stepRecorder) In(ctx context.Context, h Handle) context.Context {
	s := h.(*openStep)
	if s.next != nil {
		ctx = r.next.In(ctx, s.next)
	}
	return r.within(ctx, s.Depth+1)
}

func (r stepRecorder) Context(ctx context.Context) SpanContext {
	if r.next == nil {
		return SpanContext{}
	}
	return r.next.Context(ctx)
}

func (r stepRecorder) IDs(h Handle) (trace, span string) {
	if s := h.(*openStep); s.next != nil {
		return r.next.IDs(s.next)
	}
	return "", ""
}

func (r stepRecorder) Attr(h Handle, key Key, value string) {
	s := h.(*openStep)
	if key == Policy && s.Name == "policy" {
		s.policy = value
	}
	if s.next != nil {
		r.next.Attr(s.next, key, value)
	}
}

func (r stepRecorder) Found(h Handle, method, name string) {
	s := h.(*openStep)
	s.Name = method + " " + name
	if s.next != nil {
		r.next.Found(s.next, method, name)
	}
}

func (r stepRecorder) Fail(h Handle, method, code string) {
	s := h.(*openStep)
	s.Failed = code
	if s.next != nil {
		r.next.Fail(s.next, method, code)
	}
}

func (r stepRecorder) End(h Handle) {
	s := h.(*openStep)
	if s.next != nil {
		r.next.End(s.next)
	}
	if s.Depth < 0 || r.steps.count.Add(1) > MaxSteps {
		return
	}
	if s.policy != "" {
		s.Name += " " + strconv.Quote(s.policy)
	}
	s.Took = time.Since(s.Began)
	r.steps.emit(s.Step)
}

func (r stepRecorder) Inject(ctx context.Context) (traceparent, tracestate string) {
	if r.next == nil {
		return "", ""
	}
	return r.next.Inject(ctx)
}
