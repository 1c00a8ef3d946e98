package upstream_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// fleet returns a fleet, and a channel that receives on list changes.
func fleet(t *testing.T) (*upstream.Fleet, chan struct{}) {
	t.Helper()
	o, _ := options(t)
	listed := make(chan struct{}, 100)
	f := upstream.NewFleet(o, func() { listed <- struct{}{} }, func(string, string) {})
	t.Cleanup(f.Close)
	return f, listed
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

func TestFleet_unreachableServer(t *testing.T) {
	f, _ := fleet(t)
	f.SetTargets([]upstream.Target{program(t, "lab"), program(t, "crash"), {Name: "none", Command: []string{"/no/such/program"}}})
	if err := f.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := f.State("lab"); s.Listing == nil || len(s.Listing.Tools) != 8 || s.Err != nil {
		t.Errorf("the good one is %+v", s)
	}
	for _, name := range []string{"crash", "none"} {
		s := f.State(name)
		if s.Listing != nil || s.Err == nil || s.RetryAt.IsZero() {
			t.Errorf("%s is %+v", name, s)
		}
		_, err := f.Start(t.Context(), name, upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil)
		if gone, ok := errors.AsType[*upstream.UnreachableError](err); !ok || gone.Name != name || gone.RetryAfter == 0 {
			t.Errorf("a call of %s ends with %v", name, err)
		}
	}
	c, err := f.Start(t.Context(), "lab", upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := c.Next(t.Context()); err != nil || reply.Result == nil {
		t.Errorf("a call ends with %+v, %v", reply, err)
	}
}

func TestFleet_reconnect(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/server"
	f, listed := fleet(t)
	f.SetTargets([]upstream.Target{{Name: "late", Command: []string{path, "lab"}}})
	if err := f.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, listed, func() bool { return f.State("late").Listing != nil })
}

func TestFleet_refresh(t *testing.T) {
	t.Parallel()
	for way, target := range targetsByTransport(t) {
		t.Run(way, func(t *testing.T) {
			if way == "stateless" || way == "json" {
				t.Skip("SKIPPED: TestFleet_listChanged has a server that waits until it is listened to")
			}
			target.Name = "x"
			f, listed := fleet(t)
			f.SetTargets([]upstream.Target{target})
			until(t, listed, func() bool { return f.State("x").Listing != nil })
			before := len(f.State("x").Listing.Tools)
			c, err := f.Start(t.Context(), "x", upstream.Request{Method: upstream.MethodTool, Name: "drops"}, nil)
			if err == nil {
				_, err = c.Next(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			until(t, listed, func() bool { return len(f.State("x").Listing.Tools) == before-1 })
		})
	}
}

func TestFleet_removedTarget(t *testing.T) {
	f, listed := fleet(t)
	f.SetTargets([]upstream.Target{program(t, "lab")})
	until(t, listed, func() bool { return f.State("lab").Listing != nil })
	c, err := f.Start(t.Context(), "lab", upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.SetTargets(nil)
	if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("its call ends with %v", err)
	}
	if _, err := f.Start(t.Context(), "lab", upstream.Request{}, nil); err == nil {
		t.Error("it is still there")
	}
}

func TestFleet_resume(t *testing.T) {
	f, _ := fleet(t)
	target := program(t, "old")
	target.Input.Elicit = true
	f.SetTargets([]upstream.Target{target})
	if err := f.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := f.Start(t.Context(), "old", upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Next(t.Context())
	if err != nil || len(reply.InputRequests) != 1 || reply.State != "" || c.Ended() {
		t.Fatalf("no prompt: %+v, %v", reply, err)
	}
	handle := f.Suspend(c, "ann")
	if f.Resume("another", nil) != nil || f.Resume(handle, nil) != c || f.Resume(handle, nil) != nil {
		t.Error("a call is resumed by another handle, or twice")
	}
	c.Respond(map[string]upstream.InputResponse{reply.InputRequests[0].Key: {Result: []byte(`{"action":"decline"}`)}})
	if reply, err = c.Next(t.Context()); err != nil || !strings.Contains(string(reply.Result), "decline") {
		t.Errorf("it ends with %+v, %v", reply, err)
	}
}

func TestFleet_closeCancelsSuspended(t *testing.T) {
	f, _ := fleet(t)
	target := program(t, "old")
	target.Input.Elicit = true
	f.SetTargets([]upstream.Target{target})
	if err := f.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := f.Start(t.Context(), "old", upstream.Request{Method: upstream.MethodTool, Name: "asks"}, nil)
	if err == nil {
		_, err = c.Next(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	handle := f.Suspend(c, "ann")
	f.Close()
	if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) || f.Resume(handle, nil) != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestFleet_waitReadyForRemovedTarget(t *testing.T) {
	o, _ := options(t)
	f := upstream.NewFleet(o, func() {}, func(string, string) {})
	f.SetTargets([]upstream.Target{program(t, "mute")})
	settled := make(chan error, 1)
	go func() { settled <- f.WaitReady(context.Background()) }()
	f.Close()
	if err := <-settled; err != nil {
		t.Error(err)
	}
}
