//go:build unix && !linux

package worker

import (
	"os"
	"syscall"
)

// inboundPipe and outboundPipe return the ends of a socket pair, the reader's first. A reader of a
// socket that is also written to is woken whenever the other side reads. Pipes cost less, but
// cannot be shut down while a goroutine reads.
func inboundPipe() (r, w *os.File, err error) { return pair() }

func outboundPipe() (r, w *os.File, err error) { return pair() }

// pair returns two connected sockets.
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

func (p pipes) wake() {
	for _, end := range []*os.File{p.in, p.out} {
		if raw, err := end.SyscallConn(); err == nil {
			// An error means that the other end is closed.
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}
}

// resident is unknown on this system.
func resident(int, int64) int64 { return 0 }
