package nesting_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/internal/nesting"
	"github.com/mcpd/mcpd/scripting"
)

func TestAPlaceKnowsWhatItIsNestedIn(t *testing.T) {
	var client, first, second nesting.Place
	if err := errors.Join(first.Enter(&client, "outer", "c-1"), second.Enter(&first, "inner", "c-2")); err != nil {
		t.Fatal(err)
	}
	if client.Depth() != 0 || client.Caller() != "" || client.Parent() != "" {
		t.Errorf("the call of a client is at depth %d, in %q", client.Depth(), client.Parent())
	}
	if second.Depth() != 2 || second.Caller() != "inner" || second.Parent() != "c-2" {
		t.Errorf("at depth %d, by %s of %s", second.Depth(), second.Caller(), second.Parent())
	}
}

func TestATreeIsBoundedInDepthAndInAll(t *testing.T) {
	places := make([]nesting.Place, nesting.MaxDepth+2)
	for i := range nesting.MaxDepth {
		if err := places[i+1].Enter(&places[i], "t", "c"); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, places[nesting.MaxDepth+1].Enter(&places[nesting.MaxDepth], "t", "c"))

	var let atomic.Int64
	var all sync.WaitGroup
	for i := range 2 * nesting.MaxCalls {
		all.Go(func() {
			var p nesting.Place
			if p.Enter(&places[i%nesting.MaxDepth], "t", "c") == nil {
				let.Add(1)
			}
		})
	}
	all.Wait()
	if want := int64(nesting.MaxCalls - nesting.MaxDepth); let.Load() != want {
		t.Errorf("%d calls were let in, want %d", let.Load(), want)
	}
	refused(t, new(nesting.Place).Enter(&places[0], "t", "c"))
}

func refused(t *testing.T, err error) {
	t.Helper()
	if refusal, ok := errors.AsType[*scripting.HostError](err); !ok || refusal.Code != scripting.Denied {
		t.Errorf("got %v", err)
	}
}
