package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpd/mcpd/internal/process/cputest"
)

// offered returns why the kernel does not offer a facility to this process,
// determined without a report; nil if it does.
func offered(name string) error {
	switch name {
	case nameSeccomp:
		if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
			return errNot("there is no filter for " + runtime.GOARCH)
		}
		const getActionAvailable = 2
		action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvailable, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
			return errno
		}
	case nameLandlock:
		version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		if errno != 0 {
			return errno
		}
		if cputest.Cgo() && version < 8 {
			return errNot(fmt.Sprintf("version %d restricts no program with cgo", version))
		}
	case nameNoNewPrivs:
		if cputest.Cgo() && offered(nameSeccomp) != nil {
			return errNot("it is not set for a program with cgo")
		}
	}
	return nil
}

type errNot string

// Error returns why a facility is not offered.
func (e errNot) Error() string { return string(e) }

// needs skips a test if the kernel does not offer a facility, and fails it if
// the kernel offers a facility that is off.
func needs(t *testing.T, r Report, name string) {
	t.Helper()
	for _, f := range r {
		if f.Name != name || f.On {
			continue
		}
		if err := offered(name); err != nil {
			t.Skipf("NOT TESTED on this machine, without %s: %v", name, err)
		}
		t.Fatalf("the kernel offers %s, which is off: %s", name, f.Detail)
	}
}

func init() {
	programs["is confined"] = func() (f finding, err error) {
		if f.Report, err = Enter(Options{Memory: 512 << 20}); err != nil {
			return f, err
		}
		if _, err := os.Stderr.WriteString("confined\n"); err != nil {
			return f, err
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent has checked
		return f, nil
	}
}

func TestEnter_report(t *testing.T) {
	names := []string{nameRlimits, nameDescriptors, nameNoNewPrivs, nameUndumpable, nameSeccomp, nameLandlock}
	report := runProgram(t, command(t, "is confined")).Report
	if len(report) != len(names) {
		t.Fatalf("report = %v", report)
	}
	for i, f := range report {
		if f.Name != names[i] {
			t.Errorf("part %d = %s", i, f.Name)
		}
		t.Run(f.Name, func(t *testing.T) { needs(t, report, f.Name) })
	}
}

// TestEnter_procStatus checks a confined process from outside.
func TestEnter_procStatus(t *testing.T) {
	cmd := command(t, "is confined")
	if os.Geteuid() == 0 {
		runAsNobody(t, cmd)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); cmd.SysProcAttr != nil && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM)) {
		t.Skipf("NOT TESTED on this machine, where root cannot change its user: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := io.ReadFull(stderr, make([]byte, len("confined\n"))); err != nil {
		t.Fatalf("the process is not confined: %v", err)
	}
	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	if info, err := os.Stat(dir + "/environ"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("another process of its user may read its memory: %v", err)
	}
	limits := words(t, dir+"/limits")
	for _, limit := range []string{"core file size 0 0 bytes", "file size 0 0 bytes", "open files 0 0 files", "data size 536870912 536870912 bytes"} {
		if !strings.Contains(limits, "Max "+limit) {
			t.Errorf("missing limit %q: %s", limit, limits)
		}
	}
	judgeThreads(t, dir+"/task")
}

// judgeThreads checks that all threads of a process are confined.
func judgeThreads(t *testing.T, dir string) {
	t.Helper()
	threads, err := os.ReadDir(dir)
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads: %v", len(threads), err)
	}
	for _, thread := range threads {
		status := words(t, dir+"/"+thread.Name()+"/status")
		for name, want := range map[string]string{nameSeccomp: "Seccomp: 2", nameNoNewPrivs: "NoNewPrivs: 1"} {
			if err := offered(name); err != nil {
				t.Logf("NOT TESTED on this machine, without %s: %v", name, err)
			} else if !strings.Contains(status, want) {
				t.Errorf("a thread lacks %q: %s", want, status)
			}
		}
	}
}

// runAsNobody makes a command run as a user without any files: then files owned by
// root in /proc show that the process is undumpable. Its program is in a
// private directory, so it is passed as a descriptor.
func runAsNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	program, err := os.Open(cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	const nobody = 65534
	cmd.Path, cmd.ExtraFiles = "/proc/self/fd/3", []*os.File{program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// words returns the words of a file, separated by one space.
func words(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
