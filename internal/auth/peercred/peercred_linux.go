// Package peercred returns the process at the other end of a Unix socket. The
// standard library and golang.org/x/sys have the call for Linux only.
package peercred

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// Cred identifies a process at the time when it connected or started to listen.
type Cred struct {
	UID, GID uint32
	PID      int32
}

// Supported reports whether [Of] works on this system.
const Supported = true

// Of returns the peer of a connection (unix(7), SO_PEERCRED); ok is false if it
// is unknown.
func Of(conn net.Conn) (c Cred, ok bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return Cred{}, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return Cred{}, false
	}
	var peer *syscall.Ucred
	var got error
	err = raw.Control(func(fd uintptr) {
		peer, got = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || got != nil {
		return Cred{}, false
	}
	return Cred{UID: peer.Uid, GID: peer.Gid, PID: peer.Pid}, true
}

// maxAncestors bounds the ancestors that [MayDescend] follows.
const maxAncestors = 1024

// MayDescend reports whether the process pid is a descendant of the process ancestor, or is not known
// to be none: its ancestors cannot be read, such as after its end. It is false for a process outside
// of this PID namespace, whose pid is 0, and for the ancestor itself. A process whose parent has ended
// is a descendant of the process that adopts orphans, mostly process 1.
func MayDescend(pid, ancestor int) bool {
	if pid == ancestor {
		return false
	}
	for range maxAncestors {
		if pid == 0 {
			return false
		}
		parent, err := parentOf(pid)
		if err != nil || parent == ancestor {
			return true
		}
		pid = parent
	}
	return true
}

// parentOf returns the parent of a process (proc_pid_stat(5)); 0 for a parent outside of this PID
// namespace.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may contain anything
	if len(fields) < 2 {
		return 0, fmt.Errorf("read parent of process %d: unknown format", pid)
	}
	return strconv.Atoi(string(fields[1]))
}
