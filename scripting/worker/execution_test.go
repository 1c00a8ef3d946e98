package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// TestExecution_countedOnce makes a process call its host after the end of the call. If the call
// were removed twice, its process would seem to have less load than it has, and get all other
// calls.
func TestExecution_countedOnce(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	room := newAdmission(1, time.Second).of(unrated)
	if err := room.enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	x, err := newExecution(scripting.Call{}, nil, room, &atomic.Int64{})
	if err != nil {
		t.Fatal(err)
	}
	x.guard = cancelGuard{ctx: over}
	p := &process{ticks: &atomic.Int64{}}
	x.markRunning(p)
	x.callHost(p, hostFrame{seq: 1, op: "http.request"})
	x.dropQueued()
	x.markWaiting(p)
	if busy := p.running.Load(); busy != 0 {
		t.Errorf("%d calls compute", busy)
	}
	x.finish()
	if room.running != 0 {
		t.Errorf("%d calls are running", room.running)
	}
}

// TestHostCalls_totalBytesLimit: other calls use nearly the whole limit; a call with small
// arguments continues.
func TestHostCalls_totalBytesLimit(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	const others = maxTotalBytes - 1<<20
	e.pendingBytes.Store(others)
	for size, want := range map[int]string{
		1000: "", fairBytes / 2: "",
		2 << 20: "the pending host calls of all scripts have arguments of more than 128 MiB",
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
	if n := e.pendingBytes.Load(); n != others {
		t.Errorf("%d bytes are still counted", n-others)
	}
}

// ledger is a host that counts its operations.
type ledger struct {
	mu     sync.Mutex
	counts map[string]int
	asked  func() // called for each request; may be nil
}

// Do counts the request or notification.
func (l *ledger) Do(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
	l.mu.Lock()
	l.counts[op+string(payload)]++
	l.mu.Unlock()
	if scripting.IsNotification(op) {
		return nil, nil
	}
	if l.asked != nil {
		l.asked()
	}
	return []byte(answered), nil
}

const bystander = `
const seen = [];
for (let i = 0; i < 8; i++) {
  log.info("step " + i);
  const rs = await Promise.all([1, 2, 3].map(async (n) => {
    const r = await http.api.post("https://x/" + i + "/" + n);
    seen.push([i, n, Date.now() > 0, r.status]);
    return Math.random();
  }));
  await new Promise((done) => setTimeout(done, rs[0] * 3));
}
return seen.length;
`

// TestRetry_noRepeatedEffects kills the process at every twentieth request. Every call must have
// its result, and must have sent every request and notification once.
func TestRetry_noRepeatedEffects(t *testing.T) {
	t.Parallel()
	const calls, requests, between = 30, 24, 20
	e := executor(t, Options{Processes: 3})
	p := program(t, bystander)
	var asked, kills atomic.Int64
	kill := func() {
		if asked.Add(1)%between != 0 {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		busy := slices.DeleteFunc(slices.Clone(e.processes), func(p *process) bool { return p.calls == 0 })
		if len(busy) > 0 { // all of them may be dead now
			busy[rand.IntN(len(busy))].kill(exitTimeout)
			kills.Add(1)
		}
	}
	var all sync.WaitGroup
	for n := range calls {
		all.Go(func() {
			l := &ledger{counts: map[string]int{}, asked: kill}
			journal := scripting.NewJournal()
			out, err := e.Run(t.Context(), scripting.Call{Program: p, Seed: scripting.Seed{byte(n)}, Journal: journal, NoShedding: true}, l)
			if err != nil || out.Result == nil || string(out.Result.JSON) != "24" {
				t.Errorf("%v, %+v", err, out.Failure)
				return
			}
			once(t, l)
			if len(l.counts) != requests+8 {
				t.Errorf("%d requests and messages", len(l.counts))
			}
			replayed(t, p, journal)
		})
	}
	all.Wait()
	if kills.Load() == 0 {
		t.Error("no process was killed")
	}
}

// once checks that nothing was requested twice.
func once(t *testing.T, l *ledger) {
	t.Helper()
	for what, count := range l.counts {
		if count != 1 {
			t.Errorf("%d times: %s", count, what)
		}
	}
}

// replayed checks that the journal of a call is complete.
func replayed(t *testing.T, p *scripting.Program, journal *scripting.Journal) {
	t.Helper()
	none := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		t.Errorf("the journal lacks %s %s", op, payload)
		return nil, fmt.Errorf("not again")
	})
	out, err := scripting.Inline().Run(t.Context(), scripting.Call{Program: p, Journal: journal}, none)
	if err != nil || out.Result == nil || string(out.Result.JSON) != "24" {
		t.Errorf("replayed: %v, %+v", err, out.Failure)
	}
}

// TestRetry_onlyCulpritFails: the other calls run again, each in an exclusive process.
func TestRetry_onlyCulpritFails(t *testing.T) {
	t.Parallel()
	e := executor(t, Options{Processes: 2, Memory: 64 << 20})
	e.resident = func(int) int64 { return 0 } // so that the system kills it
	hungry := program(t, "const all = []; for (;;) { await null; all.push(new ArrayBuffer(1.6e7)) }")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l := &ledger{counts: map[string]int{}}
			out, err := e.Run(t.Context(), scripting.Call{Program: program(t, bystander)}, l)
			if err != nil || out.Result == nil {
				t.Errorf("a bystander: %v, %+v", err, out.Failure)
			}
			once(t, l)
		})
	}
	all.Go(func() {
		out, err := e.Run(t.Context(), scripting.Call{Program: hungry}, silent)
		if err != nil || out.Failure == nil || out.Failure.Kind != scripting.Limit || !strings.Contains(out.Failure.Message, "memory") {
			t.Errorf("the culprit: %v, %+v", err, out.Failure)
		}
	})
	all.Wait()
}

// TestQueue_endlessCallsBesideTrusted: endless calls of another program take all turns that they
// get.
func TestQueue_endlessCallsBesideTrusted(t *testing.T) {
	const endless = 6
	e := executor(t, Options{Processes: 1, MaxRunning: 4})
	good, bad := program(t, "return 2"), program(t, "for (;;) {}")
	run := func() {
		t.Helper()
		if out, err := e.Run(t.Context(), scripting.Call{Program: good}, silent); err != nil || out.Result == nil {
			t.Errorf("%v, %+v", err, out.Failure)
		}
	}
	run()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range endless {
		all.Go(func() {
			if out, err := e.Run(ctx, scripting.Call{Program: bad, NoShedding: true}, silent); err != nil || out.Failure == nil {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
	awaitQueued(e.admission.of(unrated), endless-3)
	for range 10 {
		run()
	}
	cancel()
	all.Wait()
}
