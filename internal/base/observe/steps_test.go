package observe_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// tracedCall is a call with policies, and a script that makes another call.
func tracedCall(ctx context.Context, base observe.Tracer) {
	ctx, span := base.For(ctx).Start(ctx, observe.Call{Method: "tools/call"})
	span.Found("outer")
	policy := span.Child("policy")
	policy.Attr(observe.Policy, "no")
	policy.Fail("POLICY_DENIED")
	policy.End()
	script := span.Child("script")
	host := script.Client("call")
	inner := host.In(ctx)
	_, nested := base.For(inner).Start(inner, observe.Call{Method: "tools/call"})
	nested.Found("inner")
	nested.End()
	host.End()
	script.End()
	span.Attr(observe.Policy, "not shown")
	span.End()
}

func TestWithSteps_order(t *testing.T) {
	var got []string
	ctx := observe.WithSteps(t.Context(), func(s observe.Step) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s", s.Depth, s.Name, s.Failed)))
		if s.Began.IsZero() || s.Took < 0 {
			t.Errorf("got %+v", s)
		}
	})
	tracedCall(ctx, observe.Tracer{})
	want := []string{`1 policy "no" POLICY_DENIED`, "3 tools/call inner", "2 call", "1 script", "0 tools/call outer"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The steps do not change what another recorder gets.
func TestWithSteps_otherRecorder(t *testing.T) {
	var alone, both spanNames
	tracedCall(t.Context(), observe.NewTracer(&alone))
	tracedCall(observe.WithSteps(t.Context(), func(observe.Step) {}), observe.NewTracer(&both))
	if diff := cmp.Diff(alone.ended, both.ended); diff != "" || len(alone.ended) != 5 {
		t.Errorf("(-without steps +with steps)\n%s", diff)
	}
}

func TestWithSteps_bound(t *testing.T) {
	var mu sync.Mutex
	n := 0
	ctx := observe.WithSteps(t.Context(), func(observe.Step) {
		mu.Lock()
		defer mu.Unlock()
		n++
	})
	_, span := (observe.Tracer{}).For(ctx).Start(ctx, observe.Call{})
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for range observe.MaxSteps {
				span.Child("host").End()
			}
		})
	}
	busy.Wait()
	if n != observe.MaxSteps {
		t.Errorf("got %d steps, want %d", n, observe.MaxSteps)
	}
}

type spanKey struct{}

// spanNames is a recorder of the names of spans, with those of their parents.
type spanNames struct {
	observe.Recorder // panics for other methods
	ended            []string
}

type namedSpan struct{ path []string }

func (r *spanNames) Start(ctx context.Context, c observe.Call) (context.Context, observe.Handle) {
	parent, _ := ctx.Value(spanKey{}).(*namedSpan)
	h := r.Part(parent, c.Method, false)
	return r.In(ctx, h), h
}

func (r *spanNames) Part(of observe.Handle, name string, _ bool) observe.Handle {
	var path []string
	if parent := of.(*namedSpan); parent != nil {
		path = parent.path
	}
	return &namedSpan{append(slices.Clip(path), name)}
}

func (r *spanNames) In(ctx context.Context, h observe.Handle) context.Context {
	return context.WithValue(ctx, spanKey{}, h.(*namedSpan))
}

func (r *spanNames) Found(h observe.Handle, _, name string) { r.Attr(h, "found", name) }
func (r *spanNames) Fail(h observe.Handle, _, code string)  { r.Attr(h, "failed", code) }
func (r *spanNames) Attr(h observe.Handle, key observe.Key, value string) {
	s := h.(*namedSpan)
	s.path[len(s.path)-1] += " " + string(key) + "=" + value
}
func (r *spanNames) End(h observe.Handle) {
	r.ended = append(r.ended, strings.Join(h.(*namedSpan).path, "/"))
}
