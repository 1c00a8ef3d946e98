package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// programs are the programs of the test binary, by argument.
var programs = map[string]func() error{
	"worker": func() error { return Main(os.Stdin, os.Stdout, esbuild.New()) },
	"plain":  func() error { return Main(os.Stdin, os.Stdout) },
	"dies":   func() error { _, _, err := readFrame(os.Stdin, maxFrame); return err },
	"lies":   func() error { return writeFrame(os.Stdout, frameImport, []byte("../secret.js")) },
}

// programOf returns the program of the test binary for a name, or nil.
func programOf(name string) func() error {
	if outcome, ok := strings.CutPrefix(name, "forges "); ok {
		return forges(outcome)
	}
	if frame, ok := strings.CutPrefix(name, "sends "); ok {
		return sends(frame)
	}
	return programs[name]
}

// TestMain makes the test binary the executable of the processes.
func TestMain(m *testing.M) {
	if program := programOf(os.Args[0]); program != nil {
		if program() != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func pool(t *testing.T, program string) *Pool {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(path, program)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func source(body string) scripting.Source {
	return scripting.Source{Name: "t", Text: diag.WholeFile("t.js", body), Path: "t.js", Transpiler: esbuild.New()}
}

func TestPool_survivors(t *testing.T) {
	p := pool(t, "worker")
	for _, body := range []string{"return 1", "return (", strings.Repeat("a();\n", 2000)} {
		if err := p.Try(source(body)); err != nil {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	if len(p.idle) != 1 {
		t.Errorf("%d processes, want one", len(p.idle))
	}
}

// A source that was not compiled does not count as a survivor.
func TestPool_withoutTranspiler(t *testing.T) {
	p := pool(t, "plain")
	src := source("const a: number = 1")
	src.Language = scripting.TS
	for range 2 {
		if err := p.Try(src); !errors.Is(err, errNoTranspiler) {
			t.Errorf("a source that needs a transpiler: %v", err)
		}
	}
	src.Transpiler = nil
	if err := p.Try(src); err != nil {
		t.Errorf("a source that the caller cannot compile either: %v", err)
	}
	if err := p.Try(source("return 1")); err != nil {
		t.Errorf("a source that needs none: %v", err)
	}
}

func TestPool_imports(t *testing.T) {
	src := source("import { a } from './lib/a.js'; import b from './gone.js'; return a + b")
	var asked []string
	src.Import = func(name string) ([]byte, error) {
		asked = append(asked, name)
		if name == "lib/a.js" {
			return []byte("import { c } from './c.js'; export const a = c"), nil
		}
		return nil, fs.ErrNotExist
	}
	if err := pool(t, "worker").Try(src); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if want := []string{"gone.js", "lib/a.js", "lib/c.js"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestPool_fatalSource(t *testing.T) {
	for _, program := range []string{"dies", "lies"} {
		src := source("return 1")
		src.Import = func(name string) ([]byte, error) { t.Errorf("%s: asked for %q", program, name); return nil, nil }
		if err := pool(t, program).Try(src); !errors.Is(err, ErrProcessDied) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestPool_idleProcessDied(t *testing.T) {
	p := pool(t, "worker")
	if err := p.Try(source("return 1")); err != nil {
		t.Fatal(err)
	}
	p.idle[0].kill()
	<-p.idle[0].exited
	if err := p.Try(source("return 2")); err != nil {
		t.Errorf("blamed for the exit of an idle process: %v", err)
	}
}

func TestPool_startError(t *testing.T) {
	p := NewPool("/does/not/exist", "worker")
	if err := p.Try(source("return 1")); err == nil || errors.Is(err, ErrProcessDied) || !strings.Contains(err.Error(), "start worker process") {
		t.Errorf("got %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Try(source("return 1")); err == nil {
		t.Error("a closed pool started a process")
	}
}

func TestTrial_cpuLimit(t *testing.T) {
	var stop atomic.Bool
	ended := make(chan struct{})
	err := withCPULimit(0, func() error {
		defer close(ended)
		for !stop.Load() {
		}
		return nil
	})
	stop.Store(true)
	<-ended
	if !errors.Is(err, errTrialCPU) {
		t.Errorf("got %v", err)
	}
}

func TestPool_fatalRemembered(t *testing.T) {
	p := pool(t, "dies")
	for range 2 {
		if err := p.Try(source("return 1")); !errors.Is(err, ErrProcessDied) {
			t.Fatalf("got %v", err)
		}
	}
	p.path = "/does/not/exist"
	if err := p.Try(source("return 1")); !errors.Is(err, ErrProcessDied) {
		t.Errorf("tried again: %v", err)
	}
	if err := p.Try(source("return 2")); errors.Is(err, ErrProcessDied) {
		t.Error("another source is fatal too")
	}
}

func init() {
	programs["strict"] = func() error {
		runtime.GOMAXPROCS(4)
		// The race detector needs more memory than a script may have. A C library reads the number
		// of processors once it has many threads, and continues if that is refused.
		return serve(os.Stdin, os.Stdout, esbuild.New(), sandbox.Options{Memory: 16 * maxMemory, Strict: !cputest.Cgo()})
	}
}

// probe returns the report of the worker process of the tests.
func probe(ctx context.Context, t *testing.T, program string) (Report, error) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(Options{}, path, program)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.Report(ctx)
}

func TestReport_facilities(t *testing.T) {
	report, err := probe(t.Context(), t, "worker")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if on := strings.HasPrefix(report.String(), "rlimits"); on != (runtime.GOOS == "linux" || runtime.GOOS == "darwin") {
		t.Errorf("on %s: %s", runtime.GOOS, report)
	}
}

func TestReport_failsLater(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(Options{}, path, "worker")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Report(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := e.Report(t.Context()); err == nil {
		t.Error("the second call does not fail")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	closed, err := NewExecutor(Options{}, path, "worker")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if _, err := closed.Report(t.Context()); err == nil {
		t.Error("a closed executor does not fail")
	}
}

func TestReport_processDied(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"lies", "dies"} {
		if report, err := probe(t.Context(), t, program); err == nil {
			t.Errorf("%s: %s", program, report)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := probe(ctx, t, "worker"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestConfinement_allowedCalls makes processes collect garbage, start threads, wait and compile. A
// refused system call would kill them. With a C library it shows that all required calls are
// allowed.
func TestConfinement_allowedCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it compiles one script after the other")
	}
	report, err := probe(t.Context(), t, "strict")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.String(), ", seccomp") {
		if offersSeccomp(t) {
			t.Fatalf("the kernel offers seccomp: %s", report)
		}
		t.Skipf("NOT TESTED on this machine: %s", report)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ends := make(exitLog, 64)
	e, err := NewExecutor(Options{Processes: 2, Memory: 16 * maxMemory, Logger: slog.New(ends)}, path, "strict")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for body, want := range busy {
		p := program(t, body)
		for range 4 {
			all.Go(func() {
				for range 32 {
					out, err := e.Run(t.Context(), scripting.Call{Program: p, NoShedding: true}, hostFunc(answering))
					if err != nil || out.Result == nil || string(out.Result.JSON) != want {
						t.Errorf("%s: %v, %+v", body, err, out)
						return
					}
				}
			})
		}
	}
	trials := pool(t, "strict")
	for i := range 4 {
		all.Go(func() {
			for j := range 10 {
				if err := trials.Try(typed(i*100 + j)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	close(ends)
	for end := range ends {
		t.Errorf("a process exited: %s", end)
	}
}

// busy are scripts with much work, and their results.
var busy = map[string]string{
	"let a = []; for (let i = 0; i < 200; i++) a.push({ i, text: 'x'.repeat(i % 100) }); return JSON.parse(JSON.stringify(a)).length": "200",
	"return new ArrayBuffer(1 << 20).byteLength + 'x'.repeat(1 << 20).length":                                                         "2097152",
	"const rs = await Promise.all([1, 2, 3, 4].map((n) => http.api.get('https://x/' + n))); return rs.length":                         "4",
	"await new Promise((r) => setTimeout(r, 1)); return 1":                                                                            "1",
	"return crypto.randomUUID().length + new Date(0).getTime() + (Math.random() > 2) + new Date(1e12).toLocaleString().length * 0":    "36",
	"const f = (n) => n ? f(n - 1) + 1 : 0; let s = 0; for (let i = 0; i < 5; i++) s += f(500); return s":                             "2500",
	"return [...'a1b2c3'.repeat(100).matchAll(/[a-z](\\d)/g)].length + (2n ** 2000n).toString().length + [3, 1, 2].sort()[0]":         "904",
	"log.info('x', { a: 1 }); progress(1, 2, 'half'); return new URL('https://a.example/b?c=d').searchParams.get('c')":                `"d"`,
}

// answering is a host that accepts every operation.
func answering(context.Context, int, string, []byte) ([]byte, error) { return []byte(answered), nil }

// typed returns a source with work for the compiler and with imports.
func typed(n int) scripting.Source {
	body := fmt.Sprintf("import { b } from './b.ts';\ninterface A { n: number }\nconst a: A[] = [];\n%s\nreturn a.map((x: A): number => x.n + b);",
		strings.Repeat(fmt.Sprintf("a.push({ n: %d } as A);\n", n), 500))
	return scripting.Source{
		Name: "t", Language: scripting.TS, Text: diag.WholeFile("t.ts", body), Path: "t.ts",
		Import: func(string) ([]byte, error) { return []byte("export const b: number = 1"), nil },
	}
}

// exitLog collects the messages of a log.
type exitLog chan string

func (exitLog) Enabled(context.Context, slog.Level) bool { return true }

func (e exitLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	select {
	case e <- text:
	default:
	}
	return nil
}

func (e exitLog) WithAttrs([]slog.Attr) slog.Handler { return e }

func (e exitLog) WithGroup(string) slog.Handler { return e }

// offersSeccomp reports whether the kernel supports seccomp filters and there is one for this
// architecture.
func offersSeccomp(t *testing.T) bool {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return false
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(status), "Seccomp:")
}
