package scripting

import (
	"context"
	"testing"
)

func TestARunIsInterruptedOnceItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{ctx: ctx, rt: openRun(t).rt}
	if !r.Look() || r.ended.Load() {
		t.Error("a run was interrupted before its context ended")
	}
	cancel()
	if r.Look() || !r.ended.Load() {
		t.Error("a run was not interrupted")
	}
}
