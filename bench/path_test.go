package bench

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting/worker"
)

// Limits for our code on the way of an HTTP call until its arguments are in the pipe of
// a worker.
const (
	maxFunctions = 35
	maxPackages  = 10
)

const module = "github.com/mcpd/mcpd/"

// gatedVerb makes this program a script worker that stops reading in the middle of
// arguments that repeat gateMark.
const (
	gatedVerb = "gated-worker"
	gateMark  = "gate"
)

// gate is the standard input of a worker. At the mark it reports to the test, then
// waits until the test closes the connection.
type gate struct {
	io.Reader
	test net.Conn // nil after it has waited
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if g.test != nil && bytes.Contains(p[:n], []byte(gateMark+gateMark)) {
		if _, err := g.test.Write([]byte("x")); err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, g.test)
		g.test = nil
	}
	return n, err
}

func gatedWorker(socket string) error {
	test, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	return worker.Main(&gate{os.Stdin, test}, os.Stdout)
}

const countTool = `
tool "count" {
  input "words" { type = list(string) }
  output "length" { type = integer }
  limits { timeout = "1m" }
  run = "return { length: input.words.length }"
}
`

// counting returns a function that calls the tool over HTTP with words that run in an
// executor. It returns the size of the request.
func counting(t *testing.T, x *worker.Executor) func(words []string) (size int) {
	t.Helper()
	s := load(t, engine.Options{
		Files:   engine.Files{Tools: fstest.MapFS{"count.hcl": {Data: []byte(countTool), Mode: 0o644}}},
		Scripts: engine.Scripts{Executor: x},
	})
	front := httptest.NewServer(handlerOf(t, s))
	t.Cleanup(front.Close)
	return func(words []string) int {
		body := modern("tools/call", `"name":"count","arguments":{"words":["`+strings.Join(words, `","`)+`"]},`)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		request.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"count"},
		}
		response, err := front.Client().Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || !bytes.Contains(text, fmt.Appendf(nil, `{"length":%d}`, len(words))) {
			t.Errorf("the call returned %.300s, %v", text, err)
		}
		return len(body)
	}
}

// gated returns an executor whose workers stop reading at the mark. wait returns when a
// worker has stopped; open makes it read on.
func gated(t *testing.T) (x *worker.Executor, wait func() (open func())) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "gate")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	marked := make(chan net.Conn)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					marked <- conn
				}
			}()
		}
	}()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x, err = worker.NewExecutor(worker.Options{}, program, "mcpd", gatedVerb, socket)
	if err != nil {
		t.Fatal(err)
	}
	return x, func() func() {
		conn := <-marked
		return func() { _ = conn.Close() }
	}
}

// TestCall_pathToTheWorker makes a call whose arguments do not fit into the pipe of a
// stopped worker. The goroutine of the call then blocks in the write.
func TestCall_pathToTheWorker(t *testing.T) {
	x, wait := gated(t)
	call := counting(t, x)
	done := make(chan int)
	go func() { done <- call([]string{strings.Repeat(gateMark, 128<<10)}) }()
	open := wait()
	functions, packages := path(t)
	open()
	<-done
	t.Logf("a call goes through %d functions in %d packages", len(functions), len(packages))
	if len(functions) > maxFunctions || len(packages) > maxPackages {
		t.Errorf("a call goes through more than %d functions or %d packages:\n%s\n%s", maxFunctions, maxPackages, strings.Join(functions, "\n"), strings.Join(packages, "\n"))
	}
}

// path returns our functions on the stack of the goroutine that writes to a worker,
// innermost first, and their packages.
func path(t *testing.T) (functions, packages []string) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if !strings.Contains(stack, "net/http.(*conn).serve") || !strings.Contains(stack, "os.(*File).Write") {
			continue
		}
		for line := range strings.Lines(stack) {
			function, ours := strings.CutPrefix(line, module)
			if !ours {
				continue
			}
			functions = append(functions, strings.TrimSpace(function))
			packages = append(packages, packageOf(function))
		}
	}
	if functions == nil {
		t.Fatalf("no call writes to a worker:\n%s", stacks)
	}
	slices.Sort(packages)
	return functions, slices.Compact(packages)
}

// TestCall_parsesArgumentsOnce checks which packages handle the arguments of an HTTP
// call, by allocations in proportion to them. Expected are reading the body, decoding
// for the schema and sending to the worker. The JSON guard scans them without
// allocating. A further parse or copy would show up as another package.
func TestCall_parsesArgumentsOnce(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x, err := worker.NewExecutor(worker.Options{}, program, "mcpd", workerVerb)
	if err != nil {
		t.Fatal(err)
	}
	call := counting(t, x)
	call([]string{"the first call starts a worker"})
	words := make([]string, 40_000) // the guard accepts 50,000 values
	for i := range words {
		words[i] = fmt.Sprint("this is the word number ", i)
	}
	before := allocated()
	size := call(words)
	after := allocated()
	var got []string
	for name, bytes := range after {
		if times := float64(bytes-before[name]) / float64(size); times > 0.5 {
			got = append(got, name)
			t.Logf("%s allocates %.1f times the request size", name, times)
		}
	}
	slices.Sort(got)
	want := []string{"internal/language/schema", "internal/protocol/transport/httpstream", "scripting/worker"}
	if !slices.Equal(got, want) {
		t.Errorf("packages that handle the arguments: got %q, want %q", got, want)
	}
	if sent := float64(after["scripting/worker"]-before["scripting/worker"]) / float64(size); sent > 2 {
		t.Errorf("data for the worker is copied %.1f times", sent)
	}
}

// allocated returns the bytes allocated since the program began, by the package of ours
// that caused them. It excludes allocations of tests.
func allocated() map[string]int64 {
	runtime.GC()
	runtime.GC() // a profile covers allocations up to the previous collection
	var records []runtime.MemProfileRecord
	n, ok := runtime.MemProfile(nil, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, n+100)
		n, ok = runtime.MemProfile(records, true)
	}
	by := map[string]int64{}
	for _, r := range records[:n] {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if function, ours := strings.CutPrefix(frame.Function, module); ours {
				if name := packageOf(function); name != "bench" {
					by[name] += r.AllocBytes
				}
				break
			}
		}
	}
	return by
}

// packageOf returns the package of a function in a stack, without the module.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "(")
	last := strings.LastIndexByte(name, '/') + 1
	return name[:last+strings.IndexByte(name[last:], '.')]
}
