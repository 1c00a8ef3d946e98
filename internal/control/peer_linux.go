package control

import (
	"net"
	"syscall"
)

// peerOf asks the system who holds the other end of a connection, or who listens
// (unix(7), SO_PEERCRED).
func peerOf(conn net.Conn) (uid, pid int, known bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var peer *syscall.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		peer, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || asked != nil {
		return 0, 0, false
	}
	return int(peer.Uid), int(peer.Pid), true
}
