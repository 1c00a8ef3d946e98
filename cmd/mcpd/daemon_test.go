package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpd/mcpd/internal/process/cputest"
)

// patience is the timeout for events that should take milliseconds. It is only a
// failsafe.
const patience = 2 * time.Minute

// pollPause is the polling interval where nothing signals the event.
const pollPause = 10 * time.Millisecond

// daemon is a background mcpd serve. Tests wait for lines of its log instead of
// sleeping.
type daemon struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
	// serving is the line of the log with the address.
	serving string

	mu    sync.Mutex
	lines []string
	next  int // the first line that waitFor has not examined
	ended bool
	news  chan struct{}
}

// holder holds the daemon of a script and its listeners.
type holder struct {
	daemon    *daemon
	behind    *daemon // or nil
	listeners map[string]*listener
	manager   *manager
	variables []string // set by the script
}

type holderKey struct{}

// startDaemon runs program serve with the flags in dir and waits until it listens. The
// process does not restart for timer slack (see [TestServe_timerSlack]).
func startDaemon(program, dir string, env, flags []string) (*daemon, error) {
	return startDaemonAnew(program, dir, append(slices.Clip(env), slackMark+"=1"), flags)
}

// startDaemonAnew is startDaemon with a restart for timer slack.
func startDaemonAnew(program, dir string, env, flags []string) (*daemon, error) {
	return startServing(program, dir, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...))
}

// startServing runs a verb that serves. Its lines are those of both streams.
func startServing(program, dir string, env, args []string) (*daemon, error) {
	d := &daemon{news: make(chan struct{}, 1)}
	d.cmd = exec.Command(program, args...)
	d.cmd.Dir, d.cmd.Env = dir, env
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	d.cmd.Stdout = d.cmd.Stderr
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.read(stderr)
	line, err := d.waitFor(regexp.MustCompile(`(https?://[^ "]+/mcp|on unix:[^ "]+)`))
	if err != nil {
		d.kill()
		return nil, err
	}
	d.serving = line
	if _, socket, ok := strings.Cut(line, "on unix:"); ok {
		socket, _, _ = strings.Cut(socket, ",")
		server := remoteOf("unix:" + filepath.Join(dir, socket))
		d.url, d.client = server.base, server.client
		return d, nil
	}
	d.url, d.client = regexp.MustCompile(`https?://[^ /]+`).FindString(line), http.DefaultClient
	return d, nil
}

func (d *daemon) read(stderr io.Reader) {
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		d.mu.Lock()
		d.lines = append(d.lines, scanner.Text())
		d.mu.Unlock()
		d.wake()
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.wake()
}

func (d *daemon) wake() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// waitFor returns the next line of the log that matches.
func (d *daemon) waitFor(pattern *regexp.Regexp) (string, error) {
	deadline := time.After(patience)
	for {
		d.mu.Lock()
		for d.next < len(d.lines) {
			line := d.lines[d.next]
			d.next++
			if pattern.MatchString(line) {
				d.mu.Unlock()
				return line, nil
			}
		}
		ended, log := d.ended, strings.Join(d.lines, "\n")
		d.mu.Unlock()
		if ended {
			return "", fmt.Errorf("mcpd exited without %s; its log:\n%s", pattern, log)
		}
		select {
		case <-d.news:
		case <-deadline:
			return "", fmt.Errorf("no line matches %s; the log:\n%s", pattern, log)
		}
	}
}

// failure describes a daemon that does not respond: its log until it exits, and its exit.
func (d *daemon) failure() error {
	_, err := d.waitFor(regexp.MustCompile(`x^`)) // matches nothing
	d.kill()
	return fmt.Errorf("%w\n%s", err, d.cmd.ProcessState)
}

func (d *daemon) kill() {
	if d != nil && d.cmd != nil && d.cmd.Process != nil && d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
}

// exchange sends one request and returns the status and the body.
func (d *daemon) exchange(method, path string, body []byte, header http.Header) (int, []byte, error) {
	request, err := d.request(method, path, body, header)
	if err != nil {
		return 0, nil, err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func (d *daemon) request(method, path string, body []byte, header http.Header) (*http.Request, error) {
	request, err := http.NewRequest(method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func daemonOf(ts *testscript.TestScript) *daemon { return ts.Value(holderKey{}).(*holder).daemon }

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	serveIn(ts, neg, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
}

func cmdDev(ts *testscript.TestScript, neg bool, args []string) {
	serveIn(ts, neg, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...))
}

func serveIn(ts *testscript.TestScript, neg bool, args []string) {
	program, err := exec.LookPath("mcpd")
	ts.Check(err)
	started, err := startServing(program, ts.MkAbs("."), append(scriptEnv(ts), slackMark+"=1"), args)
	if neg {
		if err == nil {
			started.kill()
			ts.Fatalf("mcpd %s started", args[0])
		}
		return
	}
	ts.Check(err)
	h := ts.Value(holderKey{}).(*holder)
	h.daemon.kill()
	h.daemon = started
	ts.Setenv("URL", started.url)
}

// cmdBehind keeps the current daemon running, so that the next one is in front of it.
func cmdBehind(ts *testscript.TestScript, neg bool, args []string) {
	h := ts.Value(holderKey{}).(*holder)
	if len(args) != 0 || neg || h.daemon == nil || h.behind != nil {
		ts.Fatalf("usage: behind, once, after serve")
	}
	h.behind, h.daemon = h.daemon, nil
	ts.Setenv("BEHIND", h.behind.url)
}

func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "TESTSCRIPT") {
			env = append(env, entry)
		}
	}
	for _, name := range []string{"MCPD_TEST_SECRET", "MCPD_TEST_LANG", upstreamVariable, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func cmdWaitLog(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: waitlog pattern...")
	}
	d := daemonOf(ts)
	from, last := d.next, d.next
	for _, pattern := range args {
		d.next = from
		line, err := d.waitFor(regexp.MustCompile(pattern))
		ts.Check(err)
		fmt.Fprintln(ts.Stdout(), line)
		last = max(last, d.next)
	}
	d.next = last
}

func cmdShutdown(ts *testscript.TestScript, neg bool, _ []string) {
	d := daemonOf(ts)
	ts.Check(d.cmd.Process.Signal(syscall.SIGTERM))
	err := d.cmd.Wait()
	if !neg {
		ts.Check(err)
	} else if d.cmd.ProcessState.ExitCode() != 1 {
		ts.Fatalf("mcpd exited with %v, want exit code 1", d.cmd.ProcessState)
	}
}

func cmdTerm(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(daemonOf(ts).cmd.Process.Signal(syscall.SIGTERM))
}

func cmdKill(ts *testscript.TestScript, _ bool, _ []string) { daemonOf(ts).kill() }

func cmdHup(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(daemonOf(ts).cmd.Process.Signal(syscall.SIGHUP))
}

func cmdGet(ts *testscript.TestScript, _ bool, args []string) {
	status, body, err := daemonOf(ts).exchange(http.MethodGet, args[0], nil, nil)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
}

func cmdPost(ts *testscript.TestScript, _ bool, args []string) {
	status, body, err := daemonOf(ts).exchange(http.MethodPost, args[0], []byte(ts.ReadFile(args[1])), nil)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
}

// built is the directory of the mcpd that tests run outside of a script. runTests
// removes it.
var built string

// build returns the path of an mcpd built like a release. Without cgo it is this
// binary, because linking another one takes seconds.
var build = sync.OnceValues(func() (program string, err error) {
	if !cputest.Cgo() {
		return exec.LookPath("mcpd")
	}
	if built, err = os.MkdirTemp("", "mcpd-test"); err != nil {
		return "", err
	}
	program = filepath.Join(built, "mcpd")
	command := exec.Command("go", "build", "-o", program, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mcpd: %w\n%s", err, out)
	}
	return program, nil
})

// buildDaemon returns the path of an mcpd binary for tests outside of a script. They
// must not change it.
func buildDaemon(t *testing.T) string {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// verbProgram returns the mcpd for verbs: program, or with -short one without the race
// detector, which starts faster.
func verbProgram(program string) (string, error) {
	if slower == 1 || !testing.Short() {
		return program, nil
	}
	return build()
}
