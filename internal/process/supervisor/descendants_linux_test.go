package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// startDetached starts one of the programs as a child, in a new session, with all
// descriptors that it could hold open.
func startDetached(arguments ...string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Cmd{Path: path, Args: arguments, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	return cmd.Start()
}

// join sends the process id to the test, through a pipe that stays open until
// the process ends.
func join(folder string) error {
	pipe, err := os.OpenFile(filepath.Join(folder, "alive"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	held = append(held, pipe)
	_, err = fmt.Fprintln(pipe, os.Getpid())
	return err
}

// held are pipes that stay open while the process lives.
var held []*os.File

// wait waits until the test lets the program continue, or forever.
func wait(folder string) {
	gate, err := os.Open(filepath.Join(folder, "gate"))
	if err == nil {
		_, _ = gate.Read(make([]byte, 1))
	}
}

func init() {
	programs["supervise"] = func([]string) error { return Main(os.Stdin) }
	// orphan ends at once, and leaves survivors.
	programs["orphan"] = func(a []string) error { return startDetached("survivor", a[0]) }
	programs["survivor"] = func(a []string) error {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
		if err := join(a[0]); err != nil {
			return err
		}
		for {
			_ = syscall.Pause()
		}
	}
	// family starts survivors, and ends when the test tells it to.
	programs["family"] = func(a []string) error {
		for range 3 {
			if err := errors.Join(startDetached("orphan", a[0]), startDetached("survivor", a[0])); err != nil {
				return err
			}
		}
		if err := join(a[0]); err != nil {
			return err
		}
		wait(a[0])
		return nil
	}
	// hop replaces itself by a new process all the time.
	programs["hop"] = func(a []string) error {
		if len(a) == 1 {
			if err := join(a[0]); err != nil {
				return err
			}
			if err := startDetached("hop", a[0], "on"); err != nil {
				return err
			}
			wait(a[0])
			return nil
		}
		return startDetached("hop", a[0], "on")
	}
	// caller runs a family, and waits for it.
	programs["caller"] = func(a []string) error {
		path, err := os.Executable()
		if err != nil {
			return err
		}
		_, err = Run(context.Background(), []string{path, "supervise"}, Program{Path: path, Argv: []string{"family", a[0]}, Dir: a[0], MaxOutput: 100})
		return err
	}
	programs["look"] = func([]string) error {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "NoNewPrivs:") {
				fmt.Print(strings.Join(strings.Fields(line), " "))
			}
		}
		var core syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &core); err != nil {
			return err
		}
		fmt.Print("; core ", core.Max, "; open")
		for fd := range 100 {
			// Inherited descriptors are not closed on exec, those that Go opens are.
			flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
			if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
				fmt.Print(" ", fd)
			}
		}
		return nil
	}
}

// meeting creates the pipes between programs and test.
func meeting(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"alive", "gate"} {
		if err := syscall.Mkfifo(filepath.Join(folder, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// readPIDs reads the ids of n processes that have joined. The pipe ends with the
// last of them.
func readPIDs(t *testing.T, alive io.Reader, n int) (pids []int) {
	t.Helper()
	for len(pids) < n {
		var pid int
		if _, err := fmt.Fscanln(alive, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func open(t *testing.T, folder, name string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, name), flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// checkDead reports processes that are alive.
func checkDead(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is alive: %v", pid, err)
		}
	}
}

// start runs a program that joins the test, and returns its first processes.
func start(t *testing.T, ctx context.Context, line string, processes int) (pids []int, folder string, end func() error) {
	t.Helper()
	folder = meeting(t)
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, []string{self(t), "supervise"}, program(t, line+" "+folder))
		done <- err
	}()
	return readPIDs(t, open(t, folder, "alive", os.O_RDONLY), processes), folder, func() error { return <-done }
}

func TestRun_killsDescendants(t *testing.T) {
	pids, folder, end := start(t, t.Context(), "family", 7)
	_ = open(t, folder, "gate", os.O_WRONLY).Close()
	if err := end(); err != nil {
		t.Error(err)
	}
	checkDead(t, pids)
}

func TestRun_cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pids, _, end := start(t, ctx, "family", 7)
	cancel()
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	checkDead(t, pids)
}

func TestRun_forkingProcess(t *testing.T) {
	pids, folder, end := start(t, t.Context(), "hop", 1)
	_ = open(t, folder, "gate", os.O_WRONLY).Close()
	if err := end(); err != nil {
		t.Error(err)
	}
	checkDead(t, pids)
}

func TestRun_callerDies(t *testing.T) {
	folder := meeting(t)
	caller := exec.Cmd{Path: self(t), Args: []string{"caller", folder}}
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	alive := open(t, folder, "alive", os.O_RDONLY)
	readPIDs(t, alive, 7)
	_ = caller.Process.Kill()
	_ = caller.Wait()
	// The pipe ends when no process holds it open.
	if rest, err := io.ReadAll(alive); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestRun_signalCode(t *testing.T) {
	folder := meeting(t)
	done := make(chan Result, 1)
	go func() {
		got, err := Run(context.Background(), []string{self(t), "supervise"}, program(t, "survivor "+folder))
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	pids := readPIDs(t, open(t, folder, "alive", os.O_RDONLY), 1)
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.Code != 137 {
		t.Errorf("got code %s", strconv.Itoa(got.Code))
	}
}

func TestRun_noRights(t *testing.T) {
	inherited := open(t, t.TempDir(), ".", os.O_RDONLY)
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, inherited.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	got, err := Run(t.Context(), []string{self(t), "supervise"}, program(t, "look"))
	const want = "NoNewPrivs: 1; core 0; open 0 1 2"
	if err != nil || string(got.Stdout) != want {
		t.Errorf("got %q, %q, %v, want %q", got.Stdout, got.Stderr, err, want)
	}
}

func TestDescendants(t *testing.T) {
	pids, folder, end := start(t, t.Context(), "family", 7)
	found := descendants()
	for _, pid := range pids {
		if !slices.Contains(found, pid) {
			t.Errorf("process %d was not found", pid)
		}
	}
	_ = open(t, folder, "gate", os.O_WRONLY).Close()
	if err := end(); err != nil {
		t.Error(err)
	}
}
