package worker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// hostile is a process that a script has taken over. does handles the call and later frames.
func hostile(does func(id uint64, kind byte, content []byte)) func() error {
	return func() error {
		in := bufio.NewReader(os.Stdin)
		var id uint64
		for {
			kind, content, err := readFrame(in, maxFrame)
			if err != nil {
				return err
			}
			if kind == frameCall {
				id, _ = binary.Uvarint(content)
			}
			if id > 0 {
				does(id, kind, content)
			}
		}
	}
}

// ends sends an outcome to the parent.
func ends(id uint64, out scripting.Outcome) {
	text, err := out.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	f := outcomeFrame{outcome: text}
	_ = writeFrame(os.Stdout, frameOutcome, f.append(uvarint(id)))
}

// asks sends a host call or a notification to the parent.
func asks(id uint64, seq int, op, payload string) {
	f := hostFrame{seq: seq, op: op, payload: []byte(payload)}
	_ = writeFrame(os.Stdout, frameHostCall, f.append(uvarint(id)))
}

// forged returns outcomes that no script has. They are created on demand, because each process of
// these tests would create them.
var forged = sync.OnceValue(func() map[string]scripting.Outcome {
	return map[string]scripting.Outcome{
		"no JSON":                {Result: &scripting.Result{Kind: scripting.Value, JSON: []byte("{")}},
		"no value":               {Result: &scripting.Result{Kind: scripting.Value}},
		"a text that is none":    {Result: &scripting.Result{Kind: scripting.Text, JSON: []byte(`{"a":1}`)}},
		"a value of nothing":     {Result: &scripting.Result{Kind: scripting.Nothing, JSON: []byte("1")}},
		"content of one object":  {Result: &scripting.Result{Kind: scripting.Content, Content: []byte(`{"type":"text"}`)}},
		"content of numbers":     {Result: &scripting.Result{Kind: scripting.Content, Content: []byte(`[1]`)}},
		"content without a type": {Result: &scripting.Result{Kind: scripting.Content, Content: []byte(`[{}]`)}},
		"a result too large":     {Result: &scripting.Result{Kind: scripting.Text, JSON: []byte(`"` + strings.Repeat("x", 5<<20) + `"`)}},
		"an ask that was not":    {Suspended: []scripting.Ask{{Seq: 1, Payload: []byte("{}")}}},
		"a stack too high":       {Failure: &scripting.Failure{Stack: make([]scripting.Frame, 1000)}},
		"details that are none":  {Failure: &scripting.Failure{Kind: scripting.ToolError, Details: []byte("{")}},
	}
})

func init() {
	programs["finds much fault"] = hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			f := outcomeFrame{fault: strings.Repeat("x", 20<<20)}
			_ = writeFrame(os.Stdout, frameOutcome, f.append(uvarint(id)))
		}
	})
	programs["asks otherwise"] = hostile(func(id uint64, kind byte, _ []byte) {
		switch kind {
		case frameCall:
			asks(id, 1, "ask", `{"requests":[]}`)
		case frameResponse:
			ends(id, scripting.Outcome{Suspended: []scripting.Ask{{Seq: 1, Payload: []byte(`{"requests":[{}]}`)}}})
		}
	})
	programs["shouts"] = hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			asks(id, 1, "log", `"`+strings.Repeat("x", maxNotification)+`"`)
		}
	})
	programs["hoards"] = hostile(func(id uint64, kind byte, _ []byte) {
		for seq := 1; kind == frameCall && seq <= 5; seq++ {
			asks(id, seq, "http.request", `"`+strings.Repeat("x", 20<<20)+`"`)
		}
	})
	for name, number := range map[string][]byte{"drops what never was": uvarint(99), "drops no number": []byte("\xff\xff"), "drops with nonsense": append(uvarint(99), 0xff)} {
		programs[name] = hostile(func(id uint64, kind byte, _ []byte) {
			if kind == frameCall {
				_ = writeFrame(os.Stdout, frameHostCancel, append(uvarint(id), number...))
				ends(id, scripting.Outcome{Result: &scripting.Result{}})
			}
		})
	}
	programs["leaves another behind"] = hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			self, err := os.Executable()
			other := exec.Cmd{Path: self, Args: []string{"stays"}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
			if errors.Join(err, other.Start()) == nil {
				asks(id, 1, "http.request", "{}")
				_, _ = os.Stdout.Write([]byte{frameOutcome, 0, 16, 0, 0}) // without the rest of the MiB
				os.Exit(1)
			}
		}
	})
	programs["stays"] = func() error {
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	programs["clings"] = hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			asks(id, 1, "log", "{}")
		}
	})
	programs["goes on"] = hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			ends(id, scripting.Outcome{Result: &scripting.Result{}})
			for { // until it is killed: the first frame may arrive while the call ends
				asks(id, 1, "http.request", "{}")
			}
		}
	})
}

// run runs a call in the process of a program, and returns its outcome.
func run(t *testing.T, who string, h scripting.Host) (*Executor, scripting.Outcome) {
	t.Helper()
	e, out, err := runHostile(t, who, h)
	if err != nil {
		t.Fatal(err)
	}
	return e, out
}

// runHostile runs a call in the process of a program.
func runHostile(t *testing.T, who string, h scripting.Host) (*Executor, scripting.Outcome, error) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(Options{Processes: 1, Memory: 2 << 30}, path, who)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, h)
	return e, out, err
}

// limited reports whether a call exceeded the limit with this name.
func limited(out scripting.Outcome, name string) bool {
	return out.Failure != nil && out.Failure.Kind == scripting.Limit && out.Failure.Limit == name
}

func TestHostile_invalidOutcome(t *testing.T) {
	t.Parallel()
	for name := range forged() {
		t.Run(name, func(t *testing.T) {
			if _, out := run(t, "forges "+name, silent); !limited(out, "process") {
				t.Errorf("got %+v", out)
			}
		})
	}
}

// TestHostile_suspendedAsks: the host checks grants.
func TestHostile_suspendedAsks(t *testing.T) {
	later := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { return nil, scripting.ErrSuspended })
	if _, out := run(t, "asks otherwise", later); !limited(out, "process") {
		t.Errorf("got %+v", out)
	}
}

// TestHostile_longFault: the error of a process is truncated.
func TestHostile_longFault(t *testing.T) {
	_, _, err := runHostile(t, "finds much fault", silent)
	if err == nil || len(err.Error()) > 2*maxStderr {
		t.Errorf("%d bytes", len(fmt.Sprint(err)))
	}
}

func TestHostile_largeNotification(t *testing.T) {
	heard := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		t.Errorf("received %s of %d bytes", op, len(payload))
		return nil, nil
	})
	if _, out := run(t, "shouts", heard); !limited(out, "process") {
		t.Errorf("got %+v", out)
	}
}

// TestHostile_pendingBytes: the parent stores them, regardless of the memory of the process.
func TestHostile_pendingBytes(t *testing.T) {
	waits := hostFunc(func(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if _, out := run(t, "hoards", waits); !limited(out, "host_calls") {
		t.Errorf("got %+v", out)
	}
}

func TestHostile_cancelByNumber(t *testing.T) {
	if _, out := run(t, "drops what never was", silent); out.Result == nil {
		t.Errorf("got %+v", out)
	}
	for _, who := range []string{"drops no number", "drops with nonsense"} {
		if _, out := run(t, who, silent); !limited(out, "process") {
			t.Errorf("%s: got %+v", who, out)
		}
	}
}

func TestHostile_frameAfterOutcome(t *testing.T) {
	heard := hostFunc(func(_ context.Context, _ int, op string, _ []byte) ([]byte, error) {
		t.Errorf("received %s", op)
		return nil, nil
	})
	e, out := run(t, "goes on", heard)
	if out.Result == nil {
		t.Fatalf("got %+v", out)
	}
	e.mu.Lock()
	first := slices.Clone(e.processes)
	e.mu.Unlock()
	// No goroutine reads its output until the next call, which must get its own result.
	if again, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, heard); err != nil || again.Result == nil {
		t.Errorf("the next call: %+v, %v", again, err)
	}
	for _, p := range first {
		<-p.exited
	}
}

// TestHostile_failedCallStops: the call must not continue unobserved.
func TestHostile_failedCallStops(t *testing.T) {
	panics := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { panic("at a message") })
	e, out := run(t, "clings", panics)
	if out.Failure == nil || out.Failure.Kind != scripting.HostPanic {
		t.Fatalf("got %+v", out)
	}
	awaitExits(e)
}

// awaitExits waits for the exit of the processes of an executor.
func awaitExits(e *Executor) {
	e.mu.Lock()
	processes := slices.Clone(e.processes)
	e.mu.Unlock()
	for _, p := range processes {
		<-p.exited
	}
}

// TestHostile_childProcess: without seccomp a process may have children when it is killed.
func TestHostile_childProcess(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(Options{KillDelay: time.Millisecond}, path, "leaves another behind")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		cancel()
		return nil, nil
	})
	if out, err := e.Run(ctx, scripting.Call{Program: program(t, "return 1")}, over); err != nil || out.Failure == nil {
		t.Errorf("%v, %+v", err, out)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// forges returns the program that ends its calls with a forged outcome.
func forges(name string) func() error {
	return hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			ends(id, forged()[name])
		}
	})
}

// sends returns the program that sends a malformed frame.
func sends(name string) func() error {
	return hostile(func(id uint64, kind byte, _ []byte) {
		if kind == frameCall {
			frame := malformed()[name]
			_ = writeFrame(os.Stdout, frame.kind, append(uvarint(id), frame.content...))
		}
	})
}

// deep returns JSON with nested arrays.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// malformedFrame is the content of a frame after the id of the call.
type malformedFrame struct {
	kind    byte
	content []byte
}

// malformed returns frames that no process sends. See [forged].
var malformed = sync.OnceValue(func() map[string]malformedFrame {
	return map[string]malformedFrame{
		"a host call without a number":       {frameHostCall, nil},
		"a host call cut off":                {frameHostCall, []byte("\x01\x7fhttp")},
		"a host call by no number":           {frameHostCall, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
		"a host call by a huge number":       {frameHostCall, append(uvarint(1<<40), 0, 0)},
		"a tail that is none":                {frameHostCall, (&hostFrame{seq: 1, op: "http.request", tail: []byte{99}, payload: []byte("{}")}).append(nil)},
		"an answer that was not given":       {frameHostCall, (&hostFrame{seq: 1, op: "http.request", tail: []byte{2, 1}, payload: []byte("{}")}).append(nil)},
		"the second host call":               {frameHostCall, (&hostFrame{seq: 2, op: "http.request", payload: []byte("{}")}).append(nil)},
		"an operation of a long name":        {frameHostCall, (&hostFrame{seq: 1, op: strings.Repeat("x", 1000), payload: []byte("{}")}).append(nil)},
		"a payload of nothing":               {frameHostCall, (&hostFrame{seq: 1, op: "http.request"}).append(nil)},
		"a payload cut off":                  {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{"a":`)}).append(nil)},
		"a payload with a name twice":        {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{"a":1,"a":2}`)}).append(nil)},
		"a payload with text behind it":      {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{} {}`)}).append(nil)},
		"a payload that is no text":          {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte("\"\xff\"")}).append(nil)},
		"a payload with a huge number":       {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte("1e999")}).append(nil)},
		"a payload too deep":                 {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte(deep(childLimits().Depth + 1))}).append(nil)},
		"a payload deeper than stacks":       {frameHostCall, (&hostFrame{seq: 1, op: "http.request", payload: []byte(deep(2_000_000))}).append(nil)},
		"a message too deep":                 {frameHostCall, (&hostFrame{seq: 1, op: "log", payload: []byte(deep(1000))}).append(nil)},
		"a question too deep":                {frameHostCall, (&hostFrame{seq: 1, op: "ask", payload: []byte(deep(1000))}).append(nil)},
		"an outcome of nothing":              {frameOutcome, (&outcomeFrame{}).append(nil)},
		"an outcome cut off":                 {frameOutcome, []byte{200}},
		"an outcome of no kind":              {frameOutcome, (&outcomeFrame{outcome: []byte{9, 1}}).append(nil)},
		"a result too deep":                  {frameOutcome, result(deep(1000))},
		"a failure that is none":             {frameOutcome, (&outcomeFrame{outcome: []byte("\x01{")}).append(nil)},
		"a failure too deep":                 {frameOutcome, (&outcomeFrame{outcome: []byte("\x01" + `{"Other":` + deep(1000) + "}")}).append(nil)},
		"a failure with another behind it":   {frameOutcome, (&outcomeFrame{outcome: []byte("\x01{}{}")}).append(nil)},
		"questions too deep":                 {frameOutcome, (&outcomeFrame{outcome: []byte("\x02" + deep(2_000_000))}).append(nil)},
		"a frame of a kind that we send":     {frameResponse, nil},
		"a frame of no kind":                 {'?', nil},
		"an end of a host call by no number": {frameHostCancel, nil},
	}
})

// result is the outcome of a script that returns a value.
func result(value string) []byte {
	text, err := (scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: []byte(value)}}).AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return (&outcomeFrame{outcome: text}).append(nil)
}

func init() {
	programs["announces more than comes"] = hostile(func(_ uint64, kind byte, _ []byte) {
		if kind == frameCall {
			_, _ = os.Stdout.Write([]byte{frameOutcome, 1, 0, 0, 0, 'x'})
			os.Exit(1)
		}
	})
	programs["announces too much"] = hostile(func(_ uint64, kind byte, _ []byte) {
		if kind == frameCall {
			_, _ = os.Stdout.Write([]byte{frameOutcome, 0xff, 0xff, 0xff, 0xff})
		}
	})
}

// TestHostile_malformedFrames: the size and depth of the frame do not matter.
func TestHostile_malformedFrames(t *testing.T) {
	t.Parallel()
	heard := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		t.Errorf("received %.100s with %d bytes", op, len(payload))
		return []byte("{}"), nil
	})
	names := []string{"announces more than comes", "announces too much"}
	for name := range malformed() {
		names = append(names, "sends "+name)
	}
	if testing.Short() {
		slices.Sort(names)
		names = names[:8]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if _, out := run(t, name, heard); !limited(out, "process") {
				t.Errorf("got %+v", out)
			}
		})
	}
}
