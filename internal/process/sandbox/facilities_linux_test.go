package sandbox

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests of this file check single facilities, so that none hides another.

// landlockSignals is the first version with the fix of scoped signals from the
// start.
const landlockSignals = 7

const openRead = unix.O_RDONLY | unix.O_CLOEXEC

// errno returns the number of an error, 0 for none, and closes the descriptor.
func errno(fd int, err error) int {
	if err == nil {
		// The descriptor has no other use.
		_ = unix.Close(fd)
		return 0
	}
	n, _ := err.(syscall.Errno)
	return int(n)
}

// connecting connects a new socket.
func connecting(domain int, to unix.Sockaddr) int {
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errno(fd, err)
	}
	return errno(fd, unix.Connect(fd, to))
}

// onThreads calls do on threads that exist before and after enter, and returns
// a result that is not 0, if any.
func onThreads(enter func(), do func() int) int {
	var all sync.WaitGroup
	var worst atomic.Int64
	worst.Store(-1)
	ready, entered := make(chan struct{}), make(chan struct{})
	thread := func() {
		runtime.LockOSThread()
		ready <- struct{}{}
		<-entered
		if n := int64(do()); !worst.CompareAndSwap(-1, n) && worst.Load() != n {
			worst.Store(0) // different results
		}
	}
	for range 4 {
		all.Go(thread)
		<-ready
	}
	enter()
	for range 4 {
		all.Go(thread)
		<-ready
	}
	close(entered)
	all.Wait()
	return int(worst.Load())
}

func init() {
	programs["has Landlock alone"] = func() (f finding, err error) {
		port, err := strconv.Atoi(os.Args[1])
		if err != nil {
			return f, err
		}
		parent := os.Getppid()
		opened := onThreads(func() {
			runtime.LockOSThread()
			f.Report = Report{facility(nameNoNewPrivs, noNewPrivs()), facility(nameLandlock, nil)}
			f.Report[1] = landlock()
		}, func() int { return errno(unix.Open("/proc/self/status", openRead, 0)) })
		f.Errnos = map[string]int{
			"open":     opened,
			"tcp":      connecting(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
			"abstract": connecting(unix.AF_UNIX, &unix.SockaddrUnix{Name: os.Args[2]}),
			"kill":     errno(-1, unix.Kill(parent, 0)),
		}
		// The collector waits until the scheduler stops this loop by a signal.
		var turns int
		go func() {
			for {
				turns++
			}
		}()
		runtime.GC()
		return f, nil
	}
	programs["has limits alone"] = func() (f finding, err error) {
		file, err := os.CreateTemp("", "limits")
		if err != nil {
			return f, err
		}
		defer func() { err = os.Remove(file.Name()) }()
		_, before := unix.FcntlInt(3, unix.F_GETFD, 0)
		f.Report = Report{facility(nameDescriptors, closeInherited())}
		_, after := unix.FcntlInt(3, unix.F_GETFD, 0)
		if err := setRlimits(512 << 20); err != nil {
			return f, err
		}
		_, written := unix.Write(int(file.Fd()), []byte("x"))
		_, mapped := unix.Mmap(-1, 0, 512<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		f.Errnos = map[string]int{
			"inherited, before": errno(-1, before),
			"inherited":         errno(-1, after),
			"open":              errno(unix.Open("/proc/self/status", openRead, 0)),
			"socket":            errno(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)),
			"write":             errno(-1, written),
			"memory":            errno(-1, mapped),
		}
		return f, nil
	}
}

func TestLandlock(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := "@mcpd-sandbox-" + strconv.Itoa(os.Getpid())
	local, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	cmd := command(t, "has Landlock alone")
	cmd.Args = append(cmd.Args, strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port), name)
	f := runProgram(t, cmd)
	t.Log(f.Report)
	needs(t, f.Report, nameLandlock)
	version, err := strconv.Atoi(f.Report[1].Detail)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		since int
		want  syscall.Errno
	}{"open": {1, unix.EACCES}, "tcp": {landlockNetwork, unix.EACCES}, "abstract": {landlockScopes, unix.EPERM}, "kill": {landlockSignals, unix.EPERM}} {
		if got := syscall.Errno(f.Errnos[what]); version < c.since {
			t.Logf("NOT TESTED on this machine: %s, which Landlock %d does not support", what, version)
		} else if got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestSetRlimits(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	cmd := command(t, "has limits alone")
	cmd.ExtraFiles = []*os.File{read}
	f := runProgram(t, cmd)
	for what, want := range map[string]syscall.Errno{
		"inherited, before": 0, "inherited": unix.EBADF, "open": unix.EMFILE, "socket": unix.EMFILE, "write": unix.EFBIG, "memory": unix.ENOMEM,
	} {
		if got := syscall.Errno(f.Errnos[what]); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

func init() {
	programs["computes on"] = func() (finding, error) {
		if err := limitCPU(1); err != nil {
			return finding{}, err
		}
		for turns := 0; ; turns++ {
		}
	}
}

// TestLimitCPU: the handlers of the Go runtime do not prevent it.
func TestLimitCPU(t *testing.T) {
	cmd := command(t, "computes on")
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGXCPU {
		t.Errorf("process state: %v", cmd.ProcessState)
	}
}

func TestFacility_detail(t *testing.T) {
	for want, err := range map[string]error{
		"it is not permitted here": syscall.EPERM,
		"the kernel has none":      syscall.ENOSYS,
		"out of luck":              errors.New("out of luck"),
	} {
		if got := facility("landlock", err); got.On || got.Detail != want {
			t.Errorf("%v: got %+v, want the detail %q", err, got, want)
		}
	}
	if got := facility("landlock", nil); !got.On || got.Detail != "" {
		t.Errorf("no error: got %+v", got)
	}
}
