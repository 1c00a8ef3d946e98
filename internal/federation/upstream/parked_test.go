package upstream

import (
	"context"
	"fmt"
	"testing"
)

func TestACallerThatAnswersNothingTakesThePlacesOfNoOther(t *testing.T) {
	f := NewFleet(Options{}, func() {}, func(string, string) {})
	defer f.Close()
	park := func(by string) (handle string, cause error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return f.Park(newCall(1, Request{}, nil, cancel), by), context.Cause(ctx)
	}
	var last string
	for n := range maxParkedBy {
		var err error
		if last, err = park("ann"); last == "" {
			t.Fatalf("call %d does not wait: %v", n, err)
		}
	}
	if handle, err := park("ann"); handle != "" || err != errCrowded {
		t.Errorf("one more waits, or has not ended: %v", err)
	}
	if handle, err := park("bob"); handle == "" {
		t.Errorf("a call of somebody else does not wait: %v", err)
	}
	f.Resume(last, nil)
	if handle, err := park("ann"); handle == "" {
		t.Errorf("none waits when another has gone on: %v", err)
	}
	for n := range 2 * maxParked / maxParkedBy {
		for range maxParkedBy {
			_, _ = park(fmt.Sprint("other ", n))
		}
	}
	if len(f.parked) != maxParked {
		t.Errorf("%d calls wait", len(f.parked))
	}
}
