package calltree_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/execution/calltree"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// join joins p to a position, and leaves when the test ends.
func join(t *testing.T, p, by *calltree.Position, name, parent string) {
	t.Helper()
	leave, err := p.Join(t.Context(), by, name, parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
}

func wantRejected(t *testing.T, err error) {
	t.Helper()
	if refusal, ok := errors.AsType[*scripting.HostError](err); !ok || refusal.Code != scripting.Denied {
		t.Errorf("got %v", err)
	}
}

func TestPosition_ancestors(t *testing.T) {
	var client, first, second calltree.Position
	join(t, &first, &client, "outer", "c-1")
	join(t, &second, &first, "inner", "c-2")
	if client.Depth() != 0 || client.ParentName() != "" || client.ParentID() != "" || client.CallTree() != nil {
		t.Errorf("a client call is at depth %d, in %q", client.Depth(), client.ParentID())
	}
	if second.Depth() != 2 || second.ParentName() != "inner" || second.ParentID() != "c-2" || second.CallTree() == nil || second.CallTree() != first.CallTree() {
		t.Errorf("at depth %d, by %s of %s", second.Depth(), second.ParentName(), second.ParentID())
	}
}

func TestJoin_maxDepth(t *testing.T) {
	places := make([]calltree.Position, calltree.MaxDepth+2)
	for i := range calltree.MaxDepth {
		join(t, &places[i+1], &places[i], "t", "c")
	}
	_, err := places[calltree.MaxDepth+1].Join(t.Context(), &places[calltree.MaxDepth], "t", "c")
	wantRejected(t, err)
	if places[0].Exhausted() {
		t.Error("a tree that is too deep is cancelled")
	}
}

func TestJoin_maxCalls(t *testing.T) {
	var client calltree.Position
	var ends atomic.Int64
	client.SetCancel(func(cause error) {
		if errors.Is(cause, calltree.ErrTooManyCalls) {
			ends.Add(1)
		}
	})
	var let atomic.Int64
	var all sync.WaitGroup
	for range 2 * calltree.MaxCalls {
		all.Go(func() {
			var p calltree.Position
			if leave, err := p.Join(t.Context(), &client, "t", "c"); err == nil {
				let.Add(1)
				leave()
			}
		})
	}
	all.Wait()
	if let.Load() != calltree.MaxCalls || ends.Load() != calltree.MaxCalls || !client.Exhausted() {
		t.Errorf("%d calls joined, and the tree was cancelled %d times", let.Load(), ends.Load())
	}
}

// The handler runs twice, as it does after the client has responded to an input request.
func TestJoin_cancelsCurrentRun(t *testing.T) {
	var client, first calltree.Position
	client.SetCancel(func(error) { t.Error("a run that has ended is cancelled") })
	join(t, &first, &client, "t", "c")
	ended := false
	client.SetCancel(func(error) { ended = true })
	for range calltree.MaxCalls {
		var p calltree.Position
		if leave, err := p.Join(t.Context(), &client, "t", "c"); err == nil {
			leave()
		}
	}
	if !ended {
		t.Error("the run is not cancelled")
	}
}

func TestJoin_maxParallel(t *testing.T) {
	var client calltree.Position
	running := make([]calltree.Position, calltree.MaxParallel)
	for i := range running {
		join(t, &running[i], &client, "t", "c")
	}
	var deeper calltree.Position
	join(t, &deeper, &running[0], "t", "c") // waits for no call of its own depth
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var late calltree.Position
	if _, err := late.Join(ctx, &client, "t", "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("one more call runs: %v", err)
	}
}
