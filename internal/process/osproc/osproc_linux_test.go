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

// mark is the variable of a program that has begun anew.
const mark = "BEGAN_ANEW"

// state is what a program says that was asked to begin anew.
type state struct {
	Pid     int
	Name    string
	Slack   time.Duration
	Args    []string
	Environ []string
}

// TestMain is that program, too: it begins anew, starts another and says how it is.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "begin-anew") {
		if path := os.Getenv("REMOVE"); path != "" {
			_ = os.Remove(path) // the second time there is nothing to remove
		}
		runtime.LockOSThread() // the first thread is the one that lived before, too
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

// begun runs the program with an environment and says how it was in the end.
func begun(t *testing.T, environ ...string) (pid int, s state) {
	t.Helper()
	return begunFrom(t, "/proc/self/exe", environ...)
}

// begunFrom runs the program from a path.
func begunFrom(t *testing.T, path string, environ ...string) (pid int, s state) {
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

// usually skips a test where Linux's own slack is not what the test was started with.
func usually(t *testing.T) {
	t.Helper()
	if getSlack() != defaultTimerSlack {
		t.Skipf("SKIPPED: the tests were started with a timer slack of %v, or the kernel has none", getSlack())
	}
}

func TestReexec(t *testing.T) {
	usually(t)
	pid, s := begun(t, "A=b")
	if s.Slack != TimerSlack || s.Pid != pid {
		t.Errorf("process %d may be late by %v, want process %d by %v", s.Pid, s.Slack, pid, TimerSlack)
	}
	if want := filepath.Base(os.Args[0]); s.Name != want {
		t.Errorf("it has the name %q, want %q", s.Name, want)
	}
	if want := []string{"A=b", mark + "=1"}; !slices.Equal(s.Environ, want) {
		t.Errorf("it has the environment %q, want %q", s.Environ, want)
	}
	if want := []string{"/proc/self/exe", "begin-anew", "--", "x y"}; !slices.Equal(s.Args, want) {
		t.Errorf("it has the arguments %q, want %q", s.Args, want)
	}
}

// TestReexec_marked: where a system forgets the slack, it would forever.
func TestReexec_marked(t *testing.T) {
	usually(t)
	if _, s := begun(t, mark+"=1"); s.Slack != defaultTimerSlack || len(s.Environ) != 1 {
		t.Errorf("it may be late by %v with the environment %q, want %v and the mark alone", s.Slack, s.Environ, defaultTimerSlack)
	}
}

func TestReexec_customSlack(t *testing.T) {
	usually(t)
	const chosen = 70 * time.Microsecond
	var s state
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		setSlack(chosen)
		_, s = begun(t, "A=b")
	}()
	<-done
	if s.Slack != chosen || len(s.Environ) != 1 {
		t.Errorf("it may be late by %v with the environment %q, want %v and A=b alone", s.Slack, s.Environ, chosen)
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
		t.Skipf("SKIPPED: the kernel does not tell the slack of a process: %v", err)
	}
	if got, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64); err != nil || time.Duration(got) != TimerSlack {
		t.Errorf("the program may be late by %q ns, want %d", out.String(), TimerSlack)
	}
	if after := getSlack(); after != before {
		t.Errorf("this thread may be late by %v, and before by %v", after, before)
	}
}

// TestReexec_deletedFile, as one does that was replaced since.
func TestReexec_deletedFile(t *testing.T) {
	usually(t)
	path := filepath.Join(t.TempDir(), "gone")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, s := begunFrom(t, path, "REMOVE="+path); s.Slack != TimerSlack {
		t.Errorf("it may be late by %v", s.Slack)
	}
}
