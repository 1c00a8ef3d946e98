package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Limits that the errors of bombs name. MEMORY is replaced by the script memory limit
// in MiB.
const (
	endOfTime   = `TIMEOUT: the tool did not end within its timeout of (500ms|3s)`
	endOfMemory = `EXECUTION_ERROR: the script needs more memory than its limit of MEMORY MiB`
	endOfStack  = `EXECUTION_ERROR: (the script needs more stack than its limit of 64 MiB|calls nest deeper than 1000)`
	endOfBoth   = `EXECUTION_ERROR: the worker process crashed twice while it ran this script .limits: MEMORY MiB of memory, 64 MiB of stack.`
	endOfCounts = `EXECUTION_ERROR: (one call makes at most 256 tool calls.*|the script (made|set) more than 10000 .*)`
	endOfSizes  = `EXECUTION_ERROR: .*(is larger than [0-9]+ bytes of JSON|contains itself).*`
	endOfEval   = `EXECUTION_ERROR: text cannot be run as code: eval and Function are not available`
	endOfNests  = `EXECUTION_ERROR: .*(nested deeper than 512|nests deeper than [0-9]+|may have at most [0-9]+ KiB).*`
)

// bombEnds lists the valid errors of the bombs of a file. Which limit is hit first
// depends on the machine, for example on the memory of the race detector.
var bombEnds = map[string][]string{
	"cpu.hcl":    {endOfTime, endOfMemory, endOfBoth, endOfCounts},
	"flood.hcl":  {endOfTime, endOfMemory, endOfBoth, endOfCounts},
	"memory.hcl": {endOfTime, endOfMemory, endOfBoth},
	"native.hcl": {endOfTime, endOfMemory, endOfBoth},
	"result.hcl": {endOfTime, endOfMemory, endOfBoth, endOfSizes},
	"stack.hcl":  {endOfTime, endOfMemory, endOfBoth, endOfStack, endOfNests},
	// These name no limit: text run as code, and a truncated exception of the script.
	"eval_nesting":    {endOfTime, endOfEval},                         // under load it may time out first
	"function_source": {endOfTime, endOfMemory, endOfBoth, endOfEval}, // its text of 20 MB may be built in time
	"large_error":     {endOfTime, endOfMemory, endOfBoth, `EXECUTION_ERROR: x{100,}.*`},
}

// explode calls a bomb and checks its error.
func (b *bombServer) explode(t *testing.T, tool string) {
	began := time.Now()
	_, f, err := b.try(tool, "{}")
	for err == nil && f.isRefusal() { // shed on a busy machine; it did not run, so retry
		time.Sleep(10 * time.Millisecond)
		began = time.Now()
		_, f, err = b.try(tool, "{}")
	}
	took := time.Since(began)
	switch got := f.Code + ": " + f.Message; {
	case err != nil:
		t.Errorf("%s: %v", tool, err)
	case !b.ends[tool].MatchString(got):
		t.Errorf("%s ended with %.200s", tool, got)
	case f.Code == "TIMEOUT" && !strings.HasSuffix(f.Message, "of "+b.timeouts[tool].String()):
		t.Errorf("%s, which has %s, ended with %s", tool, b.timeouts[tool], got)
	case os.Getenv("MCPD_LONG") != "" && took > b.timeouts[tool]+250*time.Millisecond:
		t.Errorf("%s took %s", tool, took)
	default:
		t.Logf("%-20s %5d ms  %.100s", tool, took.Milliseconds(), got)
	}
}

// series runs bombs, atOnce of them at a time.
func (b *bombServer) series(t *testing.T, tools []string, atOnce int) {
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, tool := range tools {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			b.explode(t, tool)
		})
	}
	all.Wait()
}

// Every bomb runs while other clients make well-behaved calls. With MCPD_LONG, 32
// connections call beside four bombs. Otherwise four connections call beside eight
// bombs, because most bombs end by timeout, and scripts get a quarter of the usual
// memory, which bombs exhaust sooner.
func TestBombs_failAlone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: scripts are not sandboxed on " + runtime.GOOS)
	}
	b := newBombServer(t)
	// After one call of each tool the scheduler trusts it. Otherwise the first calls of
	// 32 connections would take all slots of the bombs.
	b.add(t, 0, 0)
	b.post(t, "0")
	connections, atOnce := 4, 8
	if os.Getenv("MCPD_LONG") != "" {
		connections, atOnce = 32/slower, 4
	}
	stop := b.work(t, connections)
	b.series(t, b.tools, atOnce)
	stop()
	b.remainingProcesses(t)
}

// No process and no memory may remain.
func TestBombs_leaveNoProcessOrMemory(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" || runtime.GOOS != "linux" {
		t.Skip("SKIPPED: set MCPD_LONG, on Linux")
	}
	b := newBombServer(t)
	for i := range 1000 { // warm-up
		b.post(t, fmt.Sprintf("first-%d", i))
	}
	before, _ := b.memory(t)
	stop := b.work(t, 32)
	b.series(t, b.tools, 4)
	_, each := b.memory(t)
	b.series(t, slices.Repeat([]string{"backtracking", "huge_fill", "sparse_sort", "recursion"}, 250), 4)
	_, most := b.memory(t)
	stop()
	after := b.settledMemory(t, before+16<<20)
	t.Logf("the server had %d MiB, at most %d with each bomb and %d with all, and has %d", before>>20, each>>20, most>>20, after>>20)
	if most-before > 64<<20 {
		t.Errorf("the server grew by %d MiB", (most-before)>>20)
	}
	if after-before > 16<<20 {
		t.Errorf("the server retains %d MiB", (after-before)>>20)
	}
	ids := b.remainingProcesses(t)
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the server exited with %v", err)
	}
	for _, id := range ids {
		if fields, err := stat(id); err == nil && fields[0] != "Z" {
			t.Errorf("process %d remains, in state %s", id, fields[0])
		}
	}
}

// 100 calls wait for the same moment, 500 with MCPD_LONG. Each waits for a second; with
// MCPD_LONG all must end within two.
func TestCalls_waitingShareProcesses(t *testing.T) {
	calls := 100
	if os.Getenv("MCPD_LONG") != "" {
		calls = 500 / slower
	}
	b := newBombServer(t)
	var all sync.WaitGroup
	began := time.Now()
	for i := range calls {
		all.Go(func() {
			if _, f, err := b.try("wait", fmt.Sprintf(`{"id":"%d"}`, i)); err != nil || f != (fault{}) {
				t.Errorf("call %d: %v, %v", i, f, err)
			}
		})
	}
	for i := range calls {
		select {
		case <-b.waits:
		case <-time.After(patience):
			t.Fatalf("only %d calls are waiting", i)
		}
	}
	if ids := b.processes(t); len(ids) > mostWorkers {
		t.Errorf("%d calls use %d processes", calls, len(ids))
	}
	close(b.let)
	all.Wait()
	took := time.Since(began)
	t.Logf("%d calls took %s more than their wait", calls, took)
	if os.Getenv("MCPD_LONG") != "" && took > time.Second {
		t.Error("the calls take too long")
	}
}
