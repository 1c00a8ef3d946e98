//go:build unix && !linux

package worker

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// sockets are a stream of one for each direction: who reads from one that is also
// written to is woken whenever what was written is read. Pipes cost less, but
// cannot be shut down under who reads.
type sockets struct{ in, out *os.File }

// connect returns the stream to a process that is to be started, and its ends of
// it, which are to be closed once it was.
func connect(cmd *exec.Cmd) (ours stream, theirs []io.Closer, err error) {
	in, stdin, err := pair()
	if err != nil {
		return nil, nil, err
	}
	out, stdout, err := pair()
	if err != nil {
		return nil, nil, errors.Join(err, in.Close(), stdin.Close())
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return sockets{in, out}, []io.Closer{stdin, stdout}, nil
}

// pair returns two sockets that are connected, each the end of the other.
func pair() (a, b *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, end := range ends {
		syscall.CloseOnExec(end)
	}
	return os.NewFile(uintptr(ends[0]), "stream"), os.NewFile(uintptr(ends[1]), "stream"), nil
}

func (s sockets) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s sockets) Write(b []byte) (int, error) { return s.in.Write(b) }

func (s sockets) Close() error { return errors.Join(s.in.Close(), s.out.Close()) }

func (s sockets) wake() {
	for _, end := range []*os.File{s.in, s.out} {
		if raw, err := end.SyscallConn(); err == nil {
			// When these fail there is nobody at the other end any more.
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}
}

// resident is not known on this system.
func resident(int, int64) int64 { return 0 }
