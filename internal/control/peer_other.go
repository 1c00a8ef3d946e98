//go:build !linux

package control

import "net"

// peerOf knows nobody: the mode of the socket alone keeps others away.
func peerOf(net.Conn) (uid, pid int, known bool) { return 0, 0, false }
