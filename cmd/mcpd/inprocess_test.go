package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpd/mcpd/internal/ops/systemd"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// cmdMcpd runs a verb in this process with the directory and the environment of the
// script, and requires exit code 0, or another one after !. Use exec for what needs a
// process, such as serve.
func cmdMcpd(ts *testscript.TestScript, neg bool, args []string) {
	var stdout, stderr lockedBuffer
	code := runVerb(ts, &stdout, &stderr, args)
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	switch {
	case neg && code == exitOK:
		ts.Fatalf("unexpected command success")
	case !neg && code != exitOK:
		ts.Fatalf("mcpd ended with exit code %d", code)
	}
}

// cmdCode runs a verb like cmdMcpd, with both streams on stdout, followed by the exit
// code.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: code [args...]")
	}
	var out lockedBuffer
	code := runVerb(ts, &out, &out, args)
	fmt.Fprintf(ts.Stdout(), "%scode=%d\n", out.String(), code)
}

// runVerb runs a verb and returns its exit code.
func runVerb(ts *testscript.TestScript, stdout, stderr io.Writer, args []string) int {
	if len(args) > 0 && slices.Contains([]string{"serve", workerVerb, superviseVerb}, args[0]) {
		ts.Fatalf("mcpd %s needs a process: exec mcpd %[1]s", args[0])
	}
	var variables []string
	for _, name := range append([]string{"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME"}, ts.Value(holderKey{}).(*holder).variables...) {
		if value := ts.Getenv(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	e, err := scenarioEnv(ts.MkAbs("."), variables)
	ts.Check(err)
	e.stdout, e.stderr = stdout, stderr
	return run(e, args)
}

// inProcess runs a verb in this process with a directory and variables.
func inProcess(t *testing.T, dir string, variables []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	e, err := scenarioEnv(dir, variables)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs lockedBuffer
	e.stdout, e.stderr = &out, &errs
	code = run(e, args)
	return code, out.String(), errs.String()
}

// scenarioEnv returns the env of a verb that runs in this process as if in its own
// process with a directory and variables. The last of duplicate variables wins.
func scenarioEnv(dir string, variables []string) (env, error) {
	e := processEnv()
	e.process.arg0, e.process.dir, e.vars.list = "mcpd", dir, variables
	// With the race detector, processes start slowly.
	program, err := verbProgram("")
	if program != "" {
		e.process.executable = program
	}
	values := map[string]string{}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	e.vars.lookup = func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
	e.service.manager = systemd.Env{Socket: values["NOTIFY_SOCKET"], Interval: values["WATCHDOG_USEC"], Process: values["WATCHDOG_PID"]}
	e.stdin = strings.NewReader("")
	e.color, e.stdoutIsTerminal, e.stdinIsTerminal = false, false, false
	e.disk = e.disk.in(dir)
	e.executables.startWorkers = sharedWorkers
	e.executables.open = func(string) error { return errors.New("tests open no browser") }
	e.process.restartWithTimerSlack = func() {}
	e.service.signals = func() (context.Context, <-chan os.Signal, func()) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		return ctx, nil, cancel
	}
	e.libraryLog = func(io.Writer) {}
	return e, err
}

// shared is the executor of all verbs in this process. Its processes end with it.
type shared struct {
	*worker.Executor
	report worker.Report
}

// Close does nothing: other verbs use the executor.
func (shared) Close() error { return nil }

// sharedWorkers returns the shared executor if possible, because most of the time of
// scenario verbs is spent on starting processes.
func sharedWorkers(o worker.Options, path string, argv ...string) (scripting.Executor, worker.Report, error) {
	if o.Logger = nil; path != self() || o != (worker.Options{}) {
		return startWorkers(o, path, argv...)
	}
	s, err := workersOfAll()
	return s, s.report, err
}

var workersOfAll = sync.OnceValues(func() (shared, error) {
	x, report, err := startWorkers(worker.Options{}, self(), "mcpd", workerVerb)
	if err != nil {
		return shared{}, err
	}
	return shared{x.(*worker.Executor), report}, nil
})

// setsVariable matches the variables that a script sets.
var setsVariable = regexp.MustCompile(`(?m)^env '?([A-Za-z_0-9]+)=`)

// variablesOf returns the names of the variables that a script sets.
func variablesOf(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, found := range setsVariable.FindAllSubmatch(text, -1) {
		names = append(names, string(found[1]))
	}
	return names, nil
}

// in returns the disk of a process in a directory: it resolves relative names, and its
// errors contain the names as given.
func (d fileSystem) in(dir string) fileSystem {
	at := env{process: process{dir: dir}}.resolve
	return fileSystem{
		readFile: func(name string) ([]byte, error) {
			content, err := d.readFile(at(name))
			return content, named(err, name)
		},
		writeFile: func(name string, content []byte, mode os.FileMode) error {
			return named(d.writeFile(at(name), content, mode), name)
		},
		replaceFile:  func(name string, content []byte) error { return named(d.replaceFile(at(name), content), name) },
		writePrivate: func(name string, content []byte) error { return named(d.writePrivate(at(name), content), name) },
		walk: func(folder string, visit fs.WalkDirFunc) error {
			root := at(folder)
			return d.walk(root, func(name string, entry fs.DirEntry, err error) error {
				if relative, failed := filepath.Rel(root, name); failed == nil {
					name = filepath.Join(folder, relative)
				}
				return visit(name, entry, named(err, name))
			})
		},
		mkdirAll: func(name string, mode os.FileMode) error { return named(d.mkdirAll(at(name), mode), name) },
		stat: func(name string) (os.FileInfo, error) {
			info, err := d.stat(at(name))
			return info, named(err, name)
		},
		remove: func(name string) error { return named(d.remove(at(name)), name) },
	}
}

// named replaces the path in a file error.
func named(err error, name string) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) {
		return err
	}
	return &fs.PathError{Op: failed.Op, Path: name, Err: failed.Err}
}

// lockedBuffer is a buffer for concurrent writers.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// The address in use is set by --listen, also as a Unix socket, or by the configuration
// file. The server must not contact upstream servers, accept tools or create an audit
// log.
func TestServe_addressInUse(t *testing.T) {
	t.Parallel()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	path := filepath.Join(t.TempDir(), "s")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	var asked atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer behind.Close()
	config := "audit { path = \"audit.jsonl\" }\nupstream \"x\" {\n  url = \"" + behind.URL + "/mcp\"\n}\n"
	for name, c := range map[string]struct{ flag, block string }{
		"a flag":     {flag: port.Addr().String()},
		"a block":    {block: port.Addr().String()},
		"a socket":   {flag: "unix:" + path},
		"flag first": {flag: port.Addr().String(), block: "127.0.0.1:0"},
	} {
		s := newSandbox(t)
		text, args := config, []string{"serve"}
		if c.flag != "" {
			args = append(args, "--listen", c.flag)
		}
		if c.block != "" {
			text += "listen { address = \"" + c.block + "\" }\n"
		}
		s.write(t, "mcpd.hcl", text)
		before := s.holds(t)
		code, _, stderr := s.run(t, nil, args...)
		if code != exitFindings || !strings.HasSuffix(stderr, "address already in use; choose another address with --listen\n") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		if diff := cmp.Diff(before, s.holds(t)); diff != "" {
			t.Errorf("%s: files remain (-before +after)\n%s", name, diff)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the upstream server got %d requests", n)
	}
}
