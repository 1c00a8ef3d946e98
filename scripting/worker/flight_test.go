package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// TestACallIsTakenOutOnceOfThoseThatCompute has a process ask its host behind the
// end of the call: were the call taken out twice, its process would seem to have
// less to do than it has, and get the calls of all others.
func TestACallIsTakenOutOnceOfThoseThatCompute(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	room := &admission{most: 1, patience: time.Second}
	if err := room.enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	f, err := newFlight(scripting.Call{}, nil, room)
	if err != nil {
		t.Fatal(err)
	}
	f.guard = guard{ctx: over}
	p := &peer{looks: &atomic.Int64{}}
	f.busy(p)
	f.ask(p, hostFrame{seq: 1, op: "http.request"})
	f.drop()
	f.idle(p)
	if busy := p.busy.Load(); busy != 0 {
		t.Errorf("%d calls compute", busy)
	}
	f.land()
	if room.computing != 0 {
		t.Errorf("%d calls have room", room.computing)
	}
}
