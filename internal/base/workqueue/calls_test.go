package workqueue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

func TestDrainWaitsForWhatIsUnderWay(t *testing.T) {
	var c workqueue.Calls
	if c.Begin() != 1 || c.Begin() != 2 {
		t.Fatal("the count is wrong")
	}
	if !c.StartDrain() || c.StartDrain() || !c.Draining() {
		t.Error("draining starts once")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain with calls under way: %v", err)
	}
	drained := make(chan error)
	go func() { drained <- c.Drain(context.Background()) }()
	c.End()
	c.End()
	if err := <-drained; err != nil || c.Running() != 0 {
		t.Errorf("drained with %v, %d under way", err, c.Running())
	}
}
