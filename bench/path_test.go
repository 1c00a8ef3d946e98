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

// What a call over HTTP may pass of ours before its arguments are in the pipe of a worker.
const (
	maxFunctions = 35
	maxPackages  = 10
)

// gatedVerb has this program run bodies, and stop reading in the midst of arguments that
// repeat gateMark.
const (
	gatedVerb = "gated-worker"
	gateMark  = "gate"
)

// gate is the standard input of a worker. When it sees the mark it says so, and waits until
// the other end of its connection is closed.
type gate struct {
	io.Reader
	test net.Conn // nil once it has waited
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

const echoTool = `
tool "echo" {
  input "text" { type = string }
  output "length" { type = integer }
  limits { timeout = "1m" }
  run = "return { length: input.text.length }"
}
`

// gated returns an executor whose workers stop reading at the mark, and what to wait for
// until one of them has; open has it read on.
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

// TestCall_pathToTheWorker makes a call whose arguments do not fit into the pipe of a worker
// that has stopped reading: its goroutine is in the write of them.
func TestCall_pathToTheWorker(t *testing.T) {
	x, wait := gated(t)
	s := load(t, engine.Options{
		Files:   engine.Files{Tools: fstest.MapFS{"echo.hcl": {Data: []byte(echoTool), Mode: 0o644}}},
		Scripts: engine.Scripts{Executor: x},
	})
	front := httptest.NewServer(handlerOf(t, s))
	defer front.Close()
	const size = 512 << 10
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/mcp",
		strings.NewReader(modern("tools/call", `"name":"echo","arguments":{"text":"`+strings.Repeat(gateMark, size/len(gateMark))+`"},`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"},
	}
	answered := make(chan string)
	go func() {
		response, err := front.Client().Do(request)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answered <- string(text)
	}()
	open := wait()
	functions, packages := path(t)
	open()
	if text := <-answered; !strings.Contains(text, fmt.Sprintf(`"length":%d`, size)) {
		t.Errorf("the call returned %.300s", text)
	}
	t.Logf("a call passes %d functions in %d packages", len(functions), len(packages))
	if len(functions) > maxFunctions || len(packages) > maxPackages {
		t.Errorf("a call passes more than %d functions or %d packages:\n%s\n%s", maxFunctions, maxPackages, strings.Join(functions, "\n"), strings.Join(packages, "\n"))
	}
}

// path returns our functions on the stack of the goroutine that writes to a worker, the last
// one first, and their packages.
func path(t *testing.T) (functions, packages []string) {
	t.Helper()
	const module = "github.com/mcpd/mcpd/"
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
			name, _, _ := strings.Cut(function, "(")
			last := strings.LastIndexByte(name, '/') + 1
			packages = append(packages, name[:last+strings.IndexByte(name[last:], '.')])
		}
	}
	if functions == nil {
		t.Fatalf("no call writes to a worker:\n%s", stacks)
	}
	slices.Sort(packages)
	return functions, slices.Compact(packages)
}
