package worker

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/scripting"
)

// dense returns a program that needs far more memory than its source.
func dense(t testing.TB, n int) *scripting.Program {
	t.Helper()
	return program(t, fmt.Sprintf("const id = %d;\n", n)+strings.Repeat("(class{a(){}b(){}c(){}});\n", 1000)+"return id")
}

// TestProcess_largePrograms runs more programs than fit into one process, one after the other and
// then concurrently.
func TestProcess_largePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it compiles 20 large scripts")
	}
	t.Parallel()
	ends := make(exitLog, 64)
	e := executor(t, Options{Processes: 2, Memory: 64 << 20, Logger: slog.New(ends)})
	all := make([]*scripting.Program, 20)
	if cputest.Race() {
		t.Log("NOT TESTED with the detector of races, which takes as much: what memory the processes have")
		e.resident, all = func(int) int64 { return 0 }, all[:12]
	}
	run := func(n int) {
		out, err := e.Run(t.Context(), scripting.Call{Program: all[n], NoShedding: true}, silent)
		if err != nil || out.Result == nil || string(out.Result.JSON) != fmt.Sprint(n) {
			t.Errorf("%d: %v, %+v", n, err, out.Failure)
		}
	}
	for n := range all {
		all[n] = dense(t, n)
		run(n)
	}
	var together sync.WaitGroup
	for n := range all {
		together.Go(func() { run(n) })
	}
	together.Wait()
	select {
	case end := <-ends:
		t.Errorf("a process exited: %s", end)
	default:
	}
}

// TestScheduler_evictsIdleProcess: the process that was idle for longest is killed once the limit
// is reached.
func TestScheduler_evictsIdleProcess(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	stopTicks(e)
	of := func(program byte) requirements {
		return requirements{memory: e.options.Memory + int64(program)<<20, program: [32]byte{program}}
	}
	processes := map[byte]*process{}
	choose := func(program byte) {
		if processes[program], _ = e.choose(of(program)); processes[program] == nil {
			t.Fatalf("%d must wait", program)
		}
	}
	for program := byte(1); program <= 3; program++ {
		choose(program)
		release(e, processes[program], of(program), unrated)
		e.tick()
	}
	choose(4)
	for program, want := range map[byte]exitCause{1: exitIdle, 2: notExited, 3: notExited, 4: notExited} {
		if got := processes[program].exitErr().cause; got != want {
			t.Errorf("the process of %d exited by %v, want %v", program, got, want)
		}
	}
	release(e, processes[4], of(4), unrated)
}

// counted counts the written frames of a kind.
type counted struct {
	io.Writer
	kind byte
	n    int
}

// Write writes one frame.
func (c *counted) Write(frame []byte) (int, error) {
	if frame[0] == c.kind {
		c.n++
	}
	return c.Writer.Write(frame)
}

// TestProcess_programSentOnce: it is also compiled once. Another revision of a tool is another
// program.
func TestProcess_programSentOnce(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	first, second := program(t, "return 1"), program(t, "return 2")
	run := func(p *scripting.Program) {
		t.Helper()
		if out, err := e.Run(t.Context(), scripting.Call{Program: p}, silent); err != nil || out.Result == nil {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	run(first)
	e.mu.Lock()
	p := e.processes[0]
	e.mu.Unlock()
	p.wire.mu.Lock()
	taught := &counted{Writer: p.wire.out, kind: frameProgram}
	p.wire.out = taught
	p.wire.mu.Unlock()
	for range 10 {
		run(first)
		run(second)
	}
	if taught.n != 1 {
		t.Errorf("%d programs were sent, want only the second", taught.n)
	}
}

// TestProcess_dropsOldestProgram runs more programs than a process may keep.
func TestProcess_dropsOldestProgram(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	run := func(n int) {
		t.Helper()
		out, err := e.Run(t.Context(), scripting.Call{Program: program(t, fmt.Sprintf("return %d", n))}, silent)
		if err != nil || out.Result == nil || string(out.Result.JSON) != fmt.Sprint(n) {
			t.Fatalf("%d: %+v, %v", n, out, err)
		}
	}
	run(1)
	e.mu.Lock()
	p := e.processes[0]
	e.mu.Unlock()
	p.wire.mu.Lock()
	taught := &counted{Writer: p.wire.out, kind: frameProgram}
	forgotten := &counted{Writer: taught, kind: frameForget}
	p.wire.out = forgotten
	p.wire.mu.Unlock()
	p.sending.Lock()
	p.maxWeight = 2 * p.weight
	p.sending.Unlock()
	for _, n := range []int{2, 1, 3, 2, 1, 3} {
		run(n)
	}
	if taught.n != 3 || forgotten.n != 2 {
		t.Errorf("%d programs were sent and %d dropped, want 3 and 2", taught.n, forgotten.n)
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	if len(p.programs) != 2 || len(p.order) != 2 || p.weight != p.maxWeight {
		t.Errorf("it has %d programs, %d in order, of %d bytes", len(p.programs), len(p.order), p.weight)
	}
}

// TestProcess_drain: the reader stops after the last outcome, and no goroutine waits for more.
func TestProcess_drain(t *testing.T) {
	t.Parallel()
	ours, theirs, err := connect(&exec.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	x := &execution{attempt: attempt{id: 1, frames: make(chan frame, 1)}}
	p := &process{
		child:     child{stream: ours, killed: make(chan struct{}), readDone: make(chan struct{})},
		callTable: callTable{executions: map[uint64]*execution{1: x}},
	}
	p.reader = pipeReader{in: bufio.NewReader(ours), limit: maxChildFrame, handle: p.handle, failed: p.readFailed}
	read := make(chan struct{})
	go func() { p.readFor(x); close(read) }()
	for reads := false; !reads; runtime.Gosched() {
		p.reader.mu.Lock()
		reads = p.reader.held
		p.reader.mu.Unlock()
	}
	out := make(chan struct{})
	go func() { p.drain(); close(out) }()
	stdout := theirs[1].(interface{ Write([]byte) (int, error) })
	if err := writeFrame(stdout, frameOutcome, uvarint(1)); err != nil {
		t.Fatal(err)
	}
	<-read
	if len(x.frames) != 1 {
		t.Error("the outcome was not read")
	}
	<-out // must not block
	if _, ok := p.reader.acquire(); ok {
		t.Error("a goroutine reads again")
	}
	_ = ours.Close()
	for _, end := range theirs {
		_ = end.Close()
	}
}
