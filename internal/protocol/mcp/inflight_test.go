package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestTheEndOfARequestIsNoneOfTheNextWithItsID: a request that was left ends
// once for its client, and once for the goroutine that it held.
func TestTheEndOfARequestIsNoneOfTheNextWithItsID(t *testing.T) {
	var calls inflight
	id := []byte(`1`)
	first, end, f := calls.add(t.Context(), id)
	if f != nil {
		t.Fatal(f)
	}
	if _, _, f := calls.add(t.Context(), id); f == nil {
		t.Error("two requests with one id are under way")
	}
	end()
	second, _, f := calls.add(t.Context(), id)
	if f != nil {
		t.Fatal(f)
	}
	end()
	if calls.len() != 1 || first.Err() == nil || second.Err() != nil {
		t.Errorf("%d requests, the first: %v, the second: %v", calls.len(), first.Err(), second.Err())
	}
	calls.cancel(id, []byte(`"enough"`))
	cause := context.Cause(second)
	if c, ok := errors.AsType[*Cancelled](cause); !ok || c.Reason != "enough" || strings.Contains(cause.Error(), "enough") {
		t.Errorf("the second cannot be cancelled: %v", cause)
	}
}
