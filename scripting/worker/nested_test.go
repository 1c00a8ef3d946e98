package worker

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// nest is a host that runs nested calls on the same executor, one for each request.
type nest struct {
	t        *testing.T
	executor *Executor
	program  *scripting.Program
	tree     *scripting.CallTree
	depth    int
}

// Do runs a call at the next depth, in a process with another memory limit.
func (n nest) Do(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
	if n.depth == 8 {
		return []byte(answered), nil
	}
	n.depth++
	limits := scripting.Limits{Memory: n.executor.options.Memory + int64(n.depth)<<20}
	out, err := n.executor.Run(ctx, scripting.Call{Program: n.program, Limits: limits, Tree: n.tree, Depth: n.depth}, n)
	if err != nil || out.Result == nil {
		n.t.Errorf("at depth %d: %v, %+v", n.depth, err, out.Failure)
	}
	return []byte(answered), nil
}

// TestNested_noDeadlock nests calls eight deep. One call may compute, one process may run, and each
// call needs its own process.
func TestNested_noDeadlock(t *testing.T) {
	e := executor(t, Options{Processes: 1, MaxRunning: 1})
	p := program(t, "return (await http.api.get('https://x/')).status")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			out, err := e.Run(t.Context(), scripting.Call{Program: p, NoShedding: true}, nest{t, e, p, scripting.NewCallTree(), 0})
			if err != nil || out.Result == nil || string(out.Result.JSON) != "200" {
				t.Errorf("%v, %+v", err, out.Failure)
			}
		})
	}
	all.Wait()
}

// TestNested_killedProcess: a nested call kills the process of both. The outer call runs again, and
// does not repeat its host calls.
func TestNested_killedProcess(t *testing.T) {
	t.Parallel()
	e := executor(t, Options{Processes: 1, Memory: 64 << 20})
	e.resident = func(int) int64 { return 0 } // so that the system kills it
	hungry := program(t, "const all = []; for (;;) { await null; all.push(new ArrayBuffer(1.6e7)) }")
	counts := map[string]int{}
	var mu sync.Mutex
	host := hostFunc(func(ctx context.Context, _ int, _ string, payload []byte) ([]byte, error) {
		mu.Lock()
		counts[string(payload)]++
		mu.Unlock()
		if !strings.Contains(string(payload), "bomb") {
			return []byte(answered), nil
		}
		out, err := e.Run(ctx, scripting.Call{Program: hungry, Tree: scripting.NewCallTree(), Depth: 1}, silent)
		if err != nil || out.Failure == nil || !strings.Contains(out.Failure.Message, "memory") {
			t.Errorf("the nested call: %v, %+v", err, out)
		}
		return nil, &scripting.HostError{Code: "EXECUTION_ERROR", Message: "the nested call failed"}
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: program(t, `
		await http.api.get("https://x/first");
		const result = await http.api.get("https://x/bomb").catch((e) => e.code + " " + e.message);
		await http.api.get("https://x/last");
		return result;`)}, host)
	if err != nil || out.Result == nil || string(out.Result.JSON) != `"EXECUTION_ERROR the nested call failed"` {
		t.Errorf("%v, %+v", err, out.Failure)
	}
	if len(counts) != 3 {
		t.Errorf("host calls: %v", counts)
	}
	for what, count := range counts {
		if count != 1 {
			t.Errorf("%d times: %s", count, what)
		}
	}
}

// TestNested_oneQueuedPerTree: dozens of nested calls wait, and one call may compute. A later call
// of another tree waits for the first one only.
func TestNested_oneQueuedPerTree(t *testing.T) {
	room := newAdmission(1, time.Hour).of(unrated)
	if err := room.admit(t.Context(), scripting.Call{}); err != nil {
		t.Fatal(err)
	}
	tree, begun := scripting.NewCallTree(), make(chan string, 51)
	enter := func(who string, c scripting.Call) {
		if err := room.admit(t.Context(), c); err != nil {
			t.Error(err)
		}
		begun <- who
		room.release()
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { enter("same tree", scripting.Call{Tree: tree}) })
	}
	awaitQueued(room, 1)
	all.Go(func() { enter("another tree", scripting.Call{}) })
	awaitQueued(room, 2)
	room.release()
	all.Wait()
	if first, second := <-begun, <-begun; first != "same tree" || second != "another tree" {
		t.Errorf("first %s, then %s", first, second)
	}
}

// awaitQueued waits until many calls wait.
func awaitQueued(q *queue, many int) {
	for waiting := 0; waiting < many; {
		runtime.Gosched()
		q.admission.mu.Lock()
		waiting = len(q.waiting)
		q.admission.mu.Unlock()
	}
}

func TestNested_canceledCall(t *testing.T) {
	room := newAdmission(1, time.Hour).of(unrated)
	tree := scripting.NewCallTree()
	done, err := tree.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := room.admit(ctx, scripting.Call{Tree: tree}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	done()
	if err := room.admit(t.Context(), scripting.Call{Tree: tree}); err != nil || room.running != 1 {
		t.Errorf("%v, %d compute", err, room.running)
	}
}

// TestNested_processBeyondLimit: however many calls wait for each other, no more processes run.
func TestNested_processBeyondLimit(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	stopTicks(e)
	tree := scripting.NewCallTree()
	choose := func(depth, memory int) (*process, *execution) {
		t.Helper()
		x := &execution{call: scripting.Call{Tree: tree, Depth: depth}}
		p, err := e.choose(requirements{memory: e.options.Memory + int64(memory)<<20, nested: x})
		if err != nil {
			t.Fatal(err)
		}
		return p, x
	}
	first, one := choose(1, 1)
	second, two := choose(2, 2) // twice the limit, for another memory limit
	third, three := choose(2, 3)
	if again, _ := choose(2, 4); first == nil || second == nil || third == nil || again != nil {
		t.Fatalf("there are %v, %v, %v and %v", first, second, third, again)
	}
	deeper, four := choose(3, 4)
	if deeper == nil {
		t.Fatal("a deeper call must wait")
	}
	release(e, third, requirements{nested: three}, unrated)
	last, five := choose(2, 5)
	if last == nil {
		t.Error("the next call of this depth must wait although the previous one has ended")
	}
	all := map[*process]*execution{first: one, second: two, deeper: four, last: five}
	for p, x := range all {
		release(e, p, requirements{nested: x}, unrated)
	}
	for range minIdleTicks + 1 {
		e.tick()
	}
	ended := 0
	for p := range all {
		p.mu.Lock()
		if p.exit.cause == exitIdle {
			ended++
		}
		p.mu.Unlock()
	}
	if ended != len(all)-1 || len(e.overLimit) > 0 {
		t.Errorf("%d of %d processes have exited, and %d exceed the limit", ended, len(all), len(e.overLimit))
	}
}
