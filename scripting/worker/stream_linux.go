package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	var w *os.File
	raw, err := p.out.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			w, _ = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		})
	}
	if err != nil || w == nil {
		return // it is closed, or nobody else can have opened it either
	}
	_, _ = w.Write(make([]byte, 64<<10)) // as much as there is room for
	_ = w.Close()
}
