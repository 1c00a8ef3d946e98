package osproc

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mark is the variable of a reexecuted program.
const mark = "BEGAN_ANEW"

// state is the output of the test program.
type state struct {
	Pid     int
	Name    string
	Slack   time.Duration
	Args    []string
	Environ []string
}

// TestMain is also the test program: it reexecutes itself, starts another
// program and prints its state.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "begin-anew") {
		if path := os.Getenv("REMOVE"); path != "" {
			_ = os.Remove(path) // the second execution finds nothing to remove
		}
		runtime.LockOSThread() // the first thread existed before the execution
		Reexec(os.Args, os.Environ(), mark)
		if err := Start(exec.Command("/proc/self/exe", "-test.run=^$")); err != nil {
			panic(err)
		}
		name, err := os.ReadFile("/proc/self/comm")
		if err != nil {
			panic(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(state{os.Getpid(), strings.TrimSpace(string(name)), getSlack(), os.Args, os.Environ()})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runReexec runs the program with an environment and returns its final state.
func runReexec(t *testing.T, environ ...string) (pid int, s state) {
	t.Helper()
	return runReexecFrom(t, "/proc/self/exe", environ...)
}

// runReexecFrom runs the program from a path.
func runReexecFrom(t *testing.T, path string, environ ...string) (pid int, s state) {
	t.Helper()
	cmd := exec.Command(path, "begin-anew", "--", "x y")
	cmd.Env, cmd.Stderr = environ, os.Stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	return cmd.Process.Pid, s
}

// needDefaultSlack skips a test if the tests do not have the default timer slack.
func needDefaultSlack(t *testing.T) {
	t.Helper()
	if getSlack() != defaultTimerSlack {
		t.Skipf("SKIPPED: the tests were started with a timer slack of %v, or the kernel has none", getSlack())
	}
}

func TestReexec(t *testing.T) {
	needDefaultSlack(t)
	pid, s := runReexec(t, "A=b")
	if s.Slack != TimerSlack || s.Pid != pid {
		t.Errorf("process %d has slack %v, want process %d with slack %v", s.Pid, s.Slack, pid, TimerSlack)
	}
	if want := filepath.Base(os.Args[0]); s.Name != want {
		t.Errorf("name = %q, want %q", s.Name, want)
	}
	if want := []string{"A=b", mark + "=1"}; !slices.Equal(s.Environ, want) {
		t.Errorf("environment = %q, want %q", s.Environ, want)
	}
	if want := []string{"/proc/self/exe", "begin-anew", "--", "x y"}; !slices.Equal(s.Args, want) {
		t.Errorf("arguments = %q, want %q", s.Args, want)
	}
}

// TestReexec_marked: a system that ignores the slack would reexecute forever.
func TestReexec_marked(t *testing.T) {
	needDefaultSlack(t)
	if _, s := runReexec(t, mark+"=1"); s.Slack != defaultTimerSlack || len(s.Environ) != 1 {
		t.Errorf("slack %v, environment %q; want %v and only the mark", s.Slack, s.Environ, defaultTimerSlack)
	}
}

func TestReexec_customSlack(t *testing.T) {
	needDefaultSlack(t)
	const chosen = 70 * time.Microsecond
	var s state
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		setSlack(chosen)
		_, s = runReexec(t, "A=b")
	}()
	<-done
	if s.Slack != chosen || len(s.Environ) != 1 {
		t.Errorf("slack %v, environment %q; want %v and only A=b", s.Slack, s.Environ, chosen)
	}
}

func TestStart(t *testing.T) {
	before := getSlack()
	cmd := exec.Command("cat", "/proc/self/timerslack_ns")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Skipf("SKIPPED: the kernel does not report the slack of a process: %v", err)
	}
	if got, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64); err != nil || time.Duration(got) != TimerSlack {
		t.Errorf("the program has slack %q ns, want %d", out.String(), TimerSlack)
	}
	if after := getSlack(); after != before {
		t.Errorf("this thread has slack %v, before %v", after, before)
	}
}

// TestReexec_deletedFile: the program's file may have been replaced.
func TestReexec_deletedFile(t *testing.T) {
	needDefaultSlack(t)
	path := filepath.Join(t.TempDir(), "gone")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, s := runReexecFrom(t, path, "REMOVE="+path); s.Slack != TimerSlack {
		t.Errorf("slack %v", s.Slack)
	}
}
