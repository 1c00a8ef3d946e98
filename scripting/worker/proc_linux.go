package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// pipes are a stream of one for each direction.
type pipes struct{ in, out *os.File }

// connect returns the stream to a process that is to be started, and its ends of
// it, which are to be closed once it was.
func connect(cmd *exec.Cmd) (ours stream, theirs []io.Closer, err error) {
	stdin, in, err := os.Pipe() // who writes need not wait, or can be ended by Close
	if err != nil {
		return nil, nil, err
	}
	out, stdout, err := pipe()
	if err != nil {
		return nil, nil, errors.Join(err, stdin.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return pipes{in, out}, []io.Closer{stdin, stdout}, nil
}

// pipe is [os.Pipe], but that who reads waits in the system.
func pipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(ends[0]), "stream"), os.NewFile(uintptr(ends[1]), "stream"), nil
}

func (p pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

// wake sends what no process does.
func (p pipes) wake() {
	raw, err := p.out.SyscallConn()
	if err != nil {
		return
	}
	// It fails when the stream is closed. An [os.File] would wait for room.
	_ = raw.Control(func(fd uintptr) {
		w, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", fd), syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil {
			return // nobody else can have opened it either
		}
		_, _ = syscall.Write(w, make([]byte, 64<<10)) // as much as there is room for
		_ = syscall.Close(w)
	})
}

// resident returns how many bytes of memory a process has beside the program that it
// runs, which has so many; 0 when it has ended.
func resident(pid int, program int64) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	return ownMemory(text, program)
}

// ownMemory returns what statm says. The pages of a program are there once for all its
// processes; what else a process could share with others counts.
func ownMemory(statm []byte, program int64) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0
	}
	all, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	shared, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	size := int64(os.Getpagesize())
	return all*size - min(shared*size, program)
}
