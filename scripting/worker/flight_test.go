package worker

import (
	"context"
	"fmt"
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
	room := newAdmission(1, time.Second).of(unknown)
	if err := room.enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	f, err := newFlight(scripting.Call{}, nil, room, &atomic.Int64{})
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

// TestAllCallsTogetherPassAsMuchAsThereIsRoomFor has others pass nearly all that
// may be passed: a call that passes little goes on.
func TestAllCallsTogetherPassAsMuchAsThereIsRoomFor(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	const others = maxPassedByAll - 1<<20
	e.passed.Store(others)
	for size, want := range map[int]string{
		1000: "", fairPassed / 2: "",
		2 << 20: "the host calls of all bodies that wait for their answers pass more than 128 MiB together",
	} {
		p := program(t, fmt.Sprintf(`return (await http.api.post("https://x/", { body: "x".repeat(%d) })).status;`, size))
		out, err := e.Run(t.Context(), scripting.Call{Program: p}, hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { return []byte(answered), nil }))
		got := ""
		if out.Failure != nil {
			got = out.Failure.Message
		}
		if err != nil || got != want {
			t.Errorf("%d bytes: %v, %q", size, err, got)
		}
	}
	if n := e.passed.Load(); n != others {
		t.Errorf("%d bytes are passed by nobody", n-others)
	}
}
