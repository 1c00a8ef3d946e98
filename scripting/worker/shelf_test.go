package worker

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// dense returns a program that takes far more memory than its text has bytes.
func dense(t testing.TB, n int) *scripting.Program {
	t.Helper()
	return program(t, fmt.Sprintf("const id = %d;\n", n)+strings.Repeat("(class{a(){}b(){}c(){}});\n", 1000)+"return id")
}

// TestLargeProgramsCostNoCallItsProcess has more of them than there is room for in
// one process, whatever its calls do, one after the other and then all at once.
func TestLargeProgramsCostNoCallItsProcess(t *testing.T) {
	ends := make(endings, 64)
	e := executor(t, Options{Processes: 2, Memory: 64 << 20, Logger: slog.New(ends)})
	all := make([]*scripting.Program, 32)
	if raced {
		t.Log("NOT TESTED with the detector of races, which takes as much: what memory the processes have")
		e.resident, all = func(int) int64 { return 0 }, all[:12]
	}
	run := func(n int) {
		out, err := e.Run(t.Context(), scripting.Call{Program: all[n], Patient: true}, silent)
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
		t.Errorf("a process has ended: %s", end)
	default:
	}
}

// TestACallWhoseProgramFitsNowhereWaitsForTheNextProcess: of those that there may be
// one gets no more calls, and makes room once it has none.
func TestACallWhoseProgramFitsNowhereWaitsForTheNextProcess(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	large := func(program byte) need {
		return need{memory: e.options.Memory, program: [32]byte{program}, source: int(e.options.Memory / programShare / perByte)}
	}
	first, _ := e.choose(large(1))
	again, _ := e.choose(large(1))
	second, _ := e.choose(large(2))
	if first == nil || again != first || second == nil || second == first {
		t.Fatalf("one program has %p and %p, and another %p", first, again, second)
	}
	for range 2 {
		if p, err := e.choose(large(3)); p != nil || err != nil {
			t.Fatalf("the third has %p, %v", p, err)
		}
	}
	if first.drained || !second.drained {
		t.Errorf("drained: %v and %v", first.drained, second.drained)
	}
	if p, _ := e.choose(large(2)); p != nil {
		t.Error("a process that is drained has another call")
	}
	e.looks.Add(int64(soonest))
	if _, _ = e.choose(large(3)); !first.drained {
		t.Error("nothing else is drained, though the calls of the second go on")
	}
	release(e, second, large(2), unknown)
	<-second.dead
	third, err := e.choose(large(3))
	if third == nil {
		t.Errorf("the third waits: %v", err)
	}
	for p, calls := range map[*peer]int{first: 2, third: 1} {
		for range calls {
			release(e, p, need{}, unknown)
		}
	}
}

// TestAProcessWithNothingToDoMakesRoomForAnotherProgram, that which has had nothing
// to do for longest, once there are as many as may be.
func TestAProcessWithNothingToDoMakesRoomForAnotherProgram(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	unwatched(e)
	of := func(program byte) need {
		return need{memory: e.options.Memory, program: [32]byte{program}, source: 1 << 20}
	}
	peers := map[byte]*peer{}
	choose := func(program byte) {
		if peers[program], _ = e.choose(of(program)); peers[program] == nil {
			t.Fatalf("%d waits", program)
		}
	}
	for program := byte(1); program <= 3; program++ {
		choose(program)
		release(e, peers[program], of(program), unknown)
		e.look()
	}
	choose(4)
	for program, want := range map[byte]cause{1: endRested, 2: endless, 3: endless, 4: endless} {
		if got := peers[program].death().cause; got != want {
			t.Errorf("the process of %d has ended by %v, want %v", program, got, want)
		}
	}
	release(e, peers[4], of(4), unknown)
}

// counted counts the frames of a kind that are written.
type counted struct {
	io.Writer
	kind byte
	n    int
}

// Write takes one frame.
func (c *counted) Write(frame []byte) (int, error) {
	if frame[0] == c.kind {
		c.n++
	}
	return c.Writer.Write(frame)
}

// TestAProcessIsTaughtAProgramOnce, and compiles it then: another revision of its
// tool is another program.
func TestAProcessIsTaughtAProgramOnce(t *testing.T) {
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
	p := e.peers[0]
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
		t.Errorf("it was taught %d programs, want the second alone", taught.n)
	}
}
