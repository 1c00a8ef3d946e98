package upstream_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// newPool returns a pool, and a channel that receives on list changes.
func newPool(t *testing.T) (*upstream.Pool, chan struct{}) {
	t.Helper()
	o, _ := options(t)
	listed := make(chan struct{}, 100)
	pool := upstream.NewPool(o, func() { listed <- struct{}{} }, func(string, string) {})
	t.Cleanup(pool.Close)
	return pool, listed
}

// until waits for list changes until a condition holds.
func until(t *testing.T, listed <-chan struct{}, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-listed:
		case <-t.Context().Done():
			t.Fatal("it has not come")
		}
	}
}

func TestPool_unreachableServer(t *testing.T) {
	pool, _ := newPool(t)
	pool.SetTargets([]upstream.Target{program(t, "lab"), program(t, "crash"), {Name: "none", Command: []string{"/no/such/program"}}})
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := pool.State("lab"); s.Listing == nil || len(s.Listing.Tools) != 8 || s.Err != nil {
		t.Errorf("the good one is %+v", s)
	}
	for _, name := range []string{"crash", "none"} {
		s := pool.State(name)
		if s.Listing != nil || s.Err == nil || s.RetryAt.IsZero() {
			t.Errorf("%s is %+v", name, s)
		}
		_, err := pool.Start(t.Context(), name, upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil)
		if gone, ok := errors.AsType[*upstream.UnreachableError](err); !ok || gone.Name != name || gone.RetryAfter == 0 {
			t.Errorf("a call of %s ends with %v", name, err)
		}
	}
	c, err := pool.Start(t.Context(), "lab", upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := c.Next(t.Context()); err != nil || reply.Result == nil {
		t.Errorf("a call ends with %+v, %v", reply, err)
	}
}

func TestPool_reconnect(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/server"
	pool, listed := newPool(t)
	pool.SetTargets([]upstream.Target{{Name: "late", Command: []string{path, "lab"}}})
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, listed, func() bool { return pool.State("late").Listing != nil })
}

func TestPool_refresh(t *testing.T) {
	t.Parallel()
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			if way == "stateless" || way == "json" {
				t.Skip("SKIPPED: TestPool_listChanged has a server that waits until it is listened to")
			}
			target.Name = "x"
			pool, listed := newPool(t)
			pool.SetTargets([]upstream.Target{target})
			until(t, listed, func() bool { return pool.State("x").Listing != nil })
			before := len(pool.State("x").Listing.Tools)
			c, err := pool.Start(t.Context(), "x", upstream.Request{Method: upstream.MethodTool, Name: "drops"}, nil)
			if err == nil {
				_, err = c.Next(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			until(t, listed, func() bool { return len(pool.State("x").Listing.Tools) == before-1 })
		})
	}
}

func TestPool_removedTarget(t *testing.T) {
	pool, listed := newPool(t)
	pool.SetTargets([]upstream.Target{program(t, "lab")})
	until(t, listed, func() bool { return pool.State("lab").Listing != nil })
	c, err := pool.Start(t.Context(), "lab", upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool.SetTargets(nil)
	if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("its call ends with %v", err)
	}
	if _, err := pool.Start(t.Context(), "lab", upstream.Request{}, nil); err == nil {
		t.Error("it is still there")
	}
}

func TestPool_resume(t *testing.T) {
	pool, _ := newPool(t)
	target := program(t, "old")
	target.Input.Elicit = true
	pool.SetTargets([]upstream.Target{target})
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := pool.Start(t.Context(), "old", upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Next(t.Context())
	if err != nil || len(reply.InputRequests) != 1 || reply.State != "" || c.Ended() {
		t.Fatalf("no prompt: %+v, %v", reply, err)
	}
	handle := pool.Suspend(c, "ann")
	if pool.Resume("another", nil) != nil || pool.Resume(handle, nil) != c || pool.Resume(handle, nil) != nil {
		t.Error("a call is resumed by another handle, or twice")
	}
	c.Respond(map[string]upstream.InputResponse{reply.InputRequests[0].Key: {Result: []byte(`{"action":"decline"}`)}})
	if reply, err = c.Next(t.Context()); err != nil || !strings.Contains(string(reply.Result), "decline") {
		t.Errorf("it ends with %+v, %v", reply, err)
	}
}

func TestPool_closeCancelsSuspended(t *testing.T) {
	pool, _ := newPool(t)
	target := program(t, "old")
	target.Input.Elicit = true
	pool.SetTargets([]upstream.Target{target})
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := pool.Start(t.Context(), "old", upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
	if err == nil {
		_, err = c.Next(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	handle := pool.Suspend(c, "ann")
	pool.Close()
	if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) || pool.Resume(handle, nil) != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestPool_waitReadyForRemovedTarget(t *testing.T) {
	o, _ := options(t)
	pool := upstream.NewPool(o, func() {}, func(string, string) {})
	pool.SetTargets([]upstream.Target{program(t, "mute")})
	settled := make(chan error, 1)
	go func() { settled <- pool.WaitReady(context.Background()) }()
	pool.Close()
	if err := <-settled; err != nil {
		t.Error(err)
	}
}
