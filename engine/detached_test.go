package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// lateResults receives results of detached calls.
type lateResults chan call.Result

func (a lateResults) Answer(r call.Result) { a <- r }

// Hooks that store their events need a context that outlives the function.
func TestDetached_hookDeadline(t *testing.T) {
	type none struct{}
	type key struct{}
	var told context.Context
	s := unloaded(t, engine.Options{Hooks: []engine.Hook{func(ctx context.Context, e call.Event) {
		if e.Phase == call.Failed {
			told = ctx
		}
	}}})
	end := make(chan struct{})
	err := engine.AddTool(s, engine.ToolOptions{Name: "stuck", Timeout: 10 * time.Millisecond}, func(context.Context, identity.Agent, none) (none, error) {
		<-end
		return none{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	late, left := make(lateResults, 1), make(chan struct{})
	r := callBy("ada", "stuck", "{}")
	r.Late = late
	go func() {
		defer close(left)
		s.Execute(context.WithValue(t.Context(), key{}, "a trace"), r)
	}()
	<-late
	if told.Err() != nil || told.Value(key{}) != "a trace" {
		t.Errorf("the context of the hook ended with %v; its value is %v", told.Err(), told.Value(key{}))
	}
	close(end)
	<-left
}
