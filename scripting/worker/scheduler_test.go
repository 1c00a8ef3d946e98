package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// acquireOne returns a process with a call.
func acquireOne(t *testing.T, e *Executor, alone bool) *process {
	t.Helper()
	p, err := e.choose(requirements{memory: e.options.Memory, exclusive: alone})
	if err != nil || p == nil {
		t.Fatalf("there is no process: %v", err)
	}
	t.Cleanup(func() { release(e, p, requirements{}, unrated) })
	return p
}

// stopTicks stops the periodic check, so that only the test checks processes. There must not have
// been a call.
func stopTicks(e *Executor) { e.timer = time.AfterFunc(time.Hour, func() {}) }

// TestScheduler_blockedProcess: sending a program blocks until the process is killed.
func TestScheduler_blockedProcess(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	stuck := acquireOne(t, e, false)
	stuck.running.Add(1)
	stuck.sending.Lock()
	defer stuck.sending.Unlock()
	if other := acquireOne(t, e, false); other == stuck {
		t.Error("the other call has the same process")
	}
}

// awaitSpare waits for a spare other than before.
func awaitSpare(t *testing.T, e *Executor, before *process) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		e.mu.Lock()
		e.replaceSpare() // as the next tick does
		spare := e.spare
		e.mu.Unlock()
		if spare != nil && spare != before {
			return spare
		}
		runtime.Gosched()
	}
	t.Fatal("there is no spare")
	return nil
}

// TestSpare_besideAllProcesses: the spare replaces a killed process, once the last spare was taken
// or has died.
func TestSpare_besideAllProcesses(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	first := awaitSpare(t, e, nil)
	if p := acquireOne(t, e, false); p != first {
		t.Fatal("the first call has another process than the spare")
	}
	second := awaitSpare(t, e, first)
	second.kill(exitUnknown)
	third := awaitSpare(t, e, second)
	first.kill(exitTimeout)
	<-first.exited
	if p := acquireOne(t, e, false); p != third {
		t.Error("another process was started")
	}
}

// TestSpare_anyMemory: the spare gets its memory limit when it is taken.
func TestSpare_anyMemory(t *testing.T) {
	e := executor(t, Options{})
	spare := awaitSpare(t, e, nil)
	p, err := e.choose(requirements{memory: e.options.Memory / 2})
	if p != spare || p.memory != e.options.Memory/2 {
		t.Fatalf("the call has another process: %v", err)
	}
	release(e, p, requirements{}, unrated)
}

// TestScheduler_startFails: the system may have no more processes, or the executable was removed.
func TestScheduler_startFails(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	e.mu.Lock()
	e.command.path = "/nowhere/mcpd"
	e.mu.Unlock()
	first := acquireOne(t, e, false)
	first.running.Add(1)
	if second := acquireOne(t, e, false); second != first {
		t.Error("the second call has another process")
	}
	if p, err := e.choose(requirements{memory: e.options.Memory, exclusive: true}); p != nil || err != nil {
		t.Errorf("a call that must be alone does not wait for the process: %v", err)
	}
	if p, err := e.choose(requirements{memory: 1 << 40}); p != nil || err != nil {
		t.Errorf("a call of other memory does not wait for the process: %v", err)
	}
}

func TestScheduler_noProcess(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	e.mu.Lock()
	e.command.path = "/nowhere/mcpd"
	spare := e.spare
	e.mu.Unlock()
	spare.kill(exitUnknown)
	<-spare.exited
	if _, err := e.choose(requirements{memory: 1 << 40}); err == nil {
		t.Error("there is a process")
	}
}

// TestScheduler_exclusiveCall: the call must not wait for all others to end.
func TestScheduler_exclusiveCall(t *testing.T) {
	t.Parallel()
	e := executor(t, Options{Processes: 1})
	shared := acquireOne(t, e, false)
	own, err := e.choose(requirements{memory: e.options.Memory, exclusive: true})
	if err != nil || own == nil || own == shared {
		t.Fatalf("the call must wait: %v", err)
	}
	if p, _ := e.choose(requirements{memory: e.options.Memory, exclusive: true}); p != nil {
		t.Error("a third process was started")
	}
	release(e, own, requirements{}, unrated)
	<-own.exited // there is one too many
	if !slices.Equal(e.processes, []*process{shared}) {
		t.Errorf("%d processes are left", len(e.processes))
	}
}

// TestScheduler_otherMemory: a call with another memory limit must not wait for all others to end.
func TestScheduler_otherMemory(t *testing.T) {
	t.Parallel()
	e := executor(t, Options{Processes: 1})
	usual := acquireOne(t, e, false)
	large, err := e.choose(requirements{memory: 2 * e.options.Memory})
	if err != nil || large == nil || large == usual {
		t.Fatalf("the call must wait: %v", err)
	}
	release(e, large, requirements{}, unrated)
	<-large.exited
}

// TestExitError_notStarted: the exit is not blamed on a call that had not started.
func TestExitError_notStarted(t *testing.T) {
	e := executor(t, Options{})
	p := acquireOne(t, e, false)
	p.kill(exitMemory)
	<-p.exited
	x, err := newExecution(scripting.Call{Program: program(t, "return 1")}, silent, e.admission.of(unrated), &e.pendingBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer x.finish()
	var dead *exitError
	if _, err := x.run(t.Context(), p, time.Minute); !errors.As(err, &dead) || dead.isResponsible(true) {
		t.Errorf("got %v", err)
	}
}

// TestRetry_exclusiveProcess: other calls in the process may kill every process.
func TestRetry_exclusiveProcess(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	var alone []bool
	kills := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		i := slices.IndexFunc(e.processes, func(p *process) bool { return p.calls > 0 })
		alone = append(alone, e.processes[i].exclusive)
		e.processes[i].kill(exitTimeout)
		return []byte(answered), nil
	})
	body := "for (let i = 0; i < 5; i++) await http.api.get('https://x/'); return 1"
	out, err := e.Run(t.Context(), scripting.Call{Program: program(t, body)}, kills)
	if err != nil || out.Result == nil {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	if want := []bool{false, false, false, true, true}; !slices.Equal(alone, want) {
		t.Errorf("alone: %v", alone)
	}
}

// TestExitError_threads: the script did not cause this exit.
func TestExitError_threads(t *testing.T) {
	dead := exitError{exit: exit{cause: exitUnknown, calls: 1}, stderr: "runtime: failed to create new OS thread (have 2 already; errno=11)"}
	if f := dead.failure(0); !dead.isResponsible(true) || !strings.Contains(f.Message, "cannot create threads") {
		t.Errorf("got %v", f)
	}
}

// TestScheduler_stuckProcess, even if there are as many processes as usual.
func TestScheduler_stuckProcess(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	stopTicks(e)
	first := acquireOne(t, e, false)
	x := &execution{attempt: attempt{id: 1}}
	first.attach(x)
	first.running.Add(1)
	e.ticks.Store(100)
	for _, test := range []struct {
		name  string
		since int64
		stuck bool
	}{{"waits for its host", 0, false}, {"started before this check", 100, false}, {"started before the last check", 99, true}} {
		x.runningSince.Store(test.since)
		e.ticks.Store(100)
		e.tick()
		other, err := e.choose(requirements{memory: e.options.Memory})
		if err != nil || other == nil {
			t.Fatalf("%s: no process: %v", test.name, err)
		}
		if (other != first) != test.stuck {
			t.Errorf("beside a call that %s another goes elsewhere: %v", test.name, other != first)
		}
		release(e, other, requirements{}, unrated)
	}
}

// TestScheduler_stuckReset: the next call may use the process.
func TestScheduler_stuckReset(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	stopTicks(e)
	fast := requirements{memory: e.options.Memory, program: [32]byte{1}}
	e.history.update(fast.program, trusted)
	p, err := e.choose(fast)
	if err != nil {
		t.Fatal(err)
	}
	x := &execution{attempt: attempt{id: 1}}
	p.attach(x)
	x.runningSince.Store(90)
	e.ticks.Store(100)
	e.tick()
	release(e, p, fast, unrated)
	if other, err := e.choose(fast); other != p {
		t.Errorf("the next call goes elsewhere: %v", err)
	}
	release(e, p, fast, unrated)
}

// TestScheduler_longCallsSpread: they do not pile up in the process that is not stuck.
func TestScheduler_longCallsSpread(t *testing.T) {
	stuck, other := &process{placement: placement{stuck: true}}, &process{}
	stuck.running.Store(1)
	for busy, elsewhere := range map[int64]bool{0: false, 3: false, 5: true, 16: true} {
		other.running.Store(busy)
		if got := stuck.loadScore(requirements{}) < other.loadScore(requirements{}); got != elsewhere {
			t.Errorf("beside %d others a call goes where one is stuck: %v", busy, got)
		}
	}
}

// TestScheduler_processLimit: the spare counts, and so does every number of processors.
func TestScheduler_processLimit(t *testing.T) {
	for processors, want := range map[int]int{1: 2, 2: 4, 3: 6, 4: 7, 64: 7} {
		if got := defaultProcesses(processors); got != want {
			t.Errorf("%d processes for %d processors, want %d", got, processors, want)
		}
	}
	const calls = 500
	e := executor(t, Options{Processes: defaultProcesses(64), MaxRunning: calls, Memory: 1 << 30})
	stopTicks(e)
	p := program(t, "return (await http.api.get('https://x/')).status")
	var all sync.WaitGroup
	waits, let := make(chan struct{}, calls), make(chan struct{})
	host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		waits <- struct{}{}
		<-let
		return []byte(answered), nil
	})
	for range calls {
		all.Go(func() {
			out, err := e.Run(t.Context(), scripting.Call{Program: p, NoShedding: true}, host)
			if err != nil || out.Result == nil {
				t.Errorf("%v, %+v", err, out.Failure)
			}
		})
	}
	for range calls {
		<-waits
	}
	awaitSpare(t, e, nil)
	e.mu.Lock()
	running := len(e.processes) + 1
	e.mu.Unlock()
	if running > 8 {
		t.Errorf("there are %d processes", running)
	}
	close(let)
	all.Wait()
}

// TestScheduler_killedProcess: its exit may take long.
func TestScheduler_killedProcess(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	killed := acquireOne(t, e, false)
	e.mu.Lock()
	killed.kill(exitTimeout)
	gone := best(e, killed)
	e.mu.Unlock()
	if gone {
		t.Error("it is the least loaded")
	}
	release(e, killed, requirements{}, unrated)
	if other := acquireOne(t, e, false); other == killed {
		t.Error("it got a call")
	} else {
		release(e, other, requirements{}, unrated)
	}
}

// best reports whether a process is the least loaded for a call.
func best(e *Executor, p *process) bool { return e.leastLoaded(requirements{memory: p.memory}) == p }
