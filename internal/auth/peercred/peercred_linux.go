// Package peercred returns the process at the other end of a Unix socket. The
// standard library and golang.org/x/sys have the call for Linux only.
package peercred

import (
	"net"
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
