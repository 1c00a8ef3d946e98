package worker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

func init() {
	// A worker process for a trial, or for calls, that reports its environment.
	programs["has no environment"] = func() error {
		if len(os.Environ()) > 0 {
			return errFrame
		}
		return Main(os.Stdin, os.Stdout)
	}
	programs["recurses"] = func() error { return Main(&recursive{Reader: os.Stdin}, os.Stdout) }
}

// recursive recurses forever when it reads after a program that says so: the process has confined
// itself by then.
type recursive struct {
	io.Reader
	deep bool
}

// Read reads, or recurses forever.
func (r *recursive) Read(b []byte) (int, error) {
	if r.deep {
		return deeper(b), nil
	}
	n, err := r.Reader.Read(b)
	r.deep = bytes.Contains(b[:n], []byte("recurse in the process"))
	return n, err
}

// deeper has a stack frame of a KiB.
func deeper(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	var frame [1 << 10]byte
	copy(frame[:], b)
	return deeper(frame[:]) + int(frame[len(b)%len(frame)])
}

// TestProcess_noEnvironment: the environment may have secrets.
func TestProcess_noEnvironment(t *testing.T) {
	t.Setenv("MCPD_SECRET_OF_TEST", "secret")
	if err := pool(t, "has no environment").Try(source("return 1")); err != nil {
		t.Errorf("for a trial: %v", err)
	}
	if _, out := run(t, "has no environment", silent); out.Result == nil {
		t.Errorf("for calls: %+v", out.Failure)
	}
}

// TestProcess_stackLimit: the stack limit ends it long before the memory limit.
func TestProcess_stackLimit(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ends := make(exitLog, 1)
	e, err := NewExecutor(Options{Memory: 4 << 30, Logger: slog.New(ends)}, path, "recurses")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.resident = func(int) int64 { return 0 } // so that it exits by itself
	waits := hostFunc(func(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	p := program(t, "return http.api.get('https://x/', { headers: { a: 'recurse in the process' } })")
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, waits)
	if err != nil || !limited(out, "stack") || out.Failure.Message != "the script needs more stack than its limit of 64 MiB" {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	if end := <-ends; !strings.Contains(end, "goroutine stack exceeds 67108864-byte limit") {
		t.Errorf("exited for another limit: %s", end)
	}
}

// TestProcess_memoryLimit: a process at its limit is not killed.
func TestProcess_memoryLimit(t *testing.T) {
	p := program(t, "return (await http.api.get('https://x/')).status")
	for beyond, want := range map[int64]string{0: "", 1: "the script needs more memory than its limit of 1024 MiB"} {
		e := executor(t, Options{Memory: 1 << 30})
		host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
			e.mu.Lock()
			e.resident = func(int) int64 { return e.options.Memory + beyond }
			e.mu.Unlock()
			e.tick()
			return []byte(answered), nil
		})
		out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
		got := ""
		if out.Failure != nil {
			got = out.Failure.Message
		}
		if err != nil || got != want {
			t.Errorf("%d bytes beyond: %v, %q", beyond, err, got)
		}
	}
}

// TestProcess_memoryOfOtherCalls: the call runs again in a fresh process.
func TestProcess_memoryOfOtherCalls(t *testing.T) {
	e := executor(t, Options{Memory: 1 << 30})
	p := program(t, "return (await http.api.get('https://x/')).status")
	asked := 0
	for n, want := range []int{1, 2} {
		host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
			asked++
			if n == 1 {
				e.mu.Lock()
				used := e.processes[0].cmd.Process.Pid
				e.resident = func(pid int) int64 {
					if pid == used {
						return 2 * e.options.Memory
					}
					return 0
				}
				e.mu.Unlock()
				e.tick()
			}
			return []byte(answered), nil
		})
		if out, err := e.Run(t.Context(), scripting.Call{Program: p}, host); err != nil || out.Result == nil || asked != want {
			t.Errorf("call %d: %v, %+v, and its host was called %d times", n, err, out.Failure, asked)
		}
	}
}

// TestProcess_toolMemoryLimit: the limit of the tool is below the default.
func TestProcess_toolMemoryLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: a script fills the memory of its process")
	}
	t.Parallel()
	if resident(os.Getpid(), 0) == 0 {
		t.Skip("NOT TESTED on this machine: the memory of a process is unknown")
	}
	e := executor(t, Options{Memory: 4 << 30})
	looks := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		e.tick()
		return []byte(answered), nil
	})
	p := program(t, "const all = []; for (let i = 0; i < 200; i++) all.push('x'.repeat(1e6) + i); await http.api.get('https://x/'); return all.length")
	for memory, want := range map[int64]string{0: "", 64 << 20: "the script needs more memory than its limit of 64 MiB"} {
		out, err := e.Run(t.Context(), scripting.Call{Program: p, Limits: scripting.Limits{Memory: memory}}, looks)
		got := ""
		if out.Failure != nil {
			got = out.Failure.Message
		}
		if err != nil || got != want {
			t.Errorf("with %d MiB: %v, %q", memory>>20, err, got)
		}
	}
}

// TestProcess_callsAreIsolated in one process.
func TestProcess_callsAreIsolated(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	stopTicks(e)
	p := program(t, `
const root = globalThis;
const seen = [root.left, [].left, ({}).left, (() => {}).left, "".left, /x/.left, JSON.left, Math.random() === 2, Object.keys(root).includes("left"), Date.now() === 3, Symbol.for("left").left];
for (const at of [root, Array.prototype, Object.prototype, Function.prototype, String.prototype, RegExp.prototype, JSON, Symbol.prototype]) {
  try { at.left = "left"; } catch (e) { seen.push("refused"); }
}
try { Math.random = () => 2; } catch (e) { seen.push("refused"); }
try { Date.now = () => 3; } catch (e) { seen.push("refused"); }
return seen.map(String).join();
`)
	var first string
	for n := range 3 {
		out, err := e.Run(t.Context(), scripting.Call{Program: p}, silent)
		if err != nil || out.Result == nil {
			t.Fatalf("%v, %+v", err, out.Failure)
		}
		got := string(out.Result.JSON)
		if n == 0 {
			first = got
			t.Log(first)
		}
		if got != first || strings.Contains(got, "left") || strings.Contains(got, "true") {
			t.Errorf("the call after %d others sees %s", n, got)
		}
	}
	if len(e.processes) != 1 {
		t.Errorf("there are %d processes", len(e.processes))
	}
}

func TestReport(t *testing.T) {
	rlimits := Facility{Name: "rlimits", On: true}
	landlock := Facility{Name: "landlock", On: true, Detail: "6"}
	seccomp := Facility{Name: "seccomp", Detail: "it is not permitted here"}
	other := Facility{Name: "x", Detail: "out of luck"}
	for name, c := range map[string]struct {
		report                   Report
		complete                 bool
		line, confining, missing string
	}{
		"complete":   {Report{rlimits, landlock}, true, "rlimits, landlock 6", "rlimits, landlock 6", ""},
		"incomplete": {Report{rlimits, seccomp, landlock, other}, false, "rlimits, landlock 6; without seccomp: it is not permitted here; without x: out of luck", "rlimits, landlock 6", "seccomp: it is not permitted here; x: out of luck"},
		"all off":    {Report{seccomp, other}, false, "nothing; without seccomp: it is not permitted here; without x: out of luck", "nothing", "seccomp: it is not permitted here; x: out of luck"},
		"empty":      {nil, false, "nothing", "nothing", ""},
	} {
		if got := c.report.Complete(); got != c.complete {
			t.Errorf("%s: Complete returns %v", name, got)
		}
		if got := c.report.String(); got != c.line {
			t.Errorf("%s: String returns %q, want %q", name, got, c.line)
		}
		if got := c.report.Confining(); got != c.confining {
			t.Errorf("%s: Confining returns %q, want %q", name, got, c.confining)
		}
		if got := c.report.Missing(); got != c.missing {
			t.Errorf("%s: Missing returns %q, want %q", name, got, c.missing)
		}
	}
}
