package worker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// offersSeccomp reports whether the kernel has filters of system calls, and there is
// one for this machine.
func offersSeccomp(t *testing.T) bool {
	t.Helper()
	return strings.Contains(words(t, "self/status"), "Seccomp:") && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
}

// words returns the words of a file of /proc, with one space between two.
func words(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestTheKernelSaysThatTheProcessOfACallIsConfined looks at one that runs calls.
func TestTheKernelSaysThatTheProcessOfACallIsConfined(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, silent)
	if err != nil || out.Result == nil {
		t.Fatalf("%v, %+v", err, out.Failure)
	}
	pid := e.peers[0].cmd.Process.Pid
	status, limits := words(t, fmt.Sprint(pid, "/status")), words(t, fmt.Sprint(pid, "/limits"))
	if !offersSeccomp(t) {
		t.Log("NOT TESTED on this machine: seccomp, which it does not offer")
	} else if !strings.Contains(status, "Seccomp: 2") || !strings.Contains(status, "NoNewPrivs: 1") {
		t.Errorf("its status is %s", status)
	}
	for _, limit := range []string{"core file size 0 0 bytes", "file size 0 0 bytes", "open files 0 0 files", "data size 2147483648 2147483648 bytes"} {
		if !strings.Contains(limits, "Max "+limit) {
			t.Errorf("there is no limit %q: %s", limit, limits)
		}
	}
}
