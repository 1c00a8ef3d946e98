package authn

import (
	"net"
	"syscall"
)

// peersAreKnown says that the system tells who holds the other end of a socket.
const peersAreKnown = true

// peerOf asks the system who made a connection (unix(7), SO_PEERCRED). It tells
// the user as it was then.
func peerOf(c *net.UnixConn) (peer, bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, false
	}
	var known *syscall.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		known, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || asked != nil {
		return peer{}, false
	}
	return peer{uid: known.Uid, gid: known.Gid, pid: known.Pid}, true
}
