//go:build !linux

package peercred

import "net"

// Cred is a process as it was when it connected, or began to listen.
type Cred struct {
	UID, GID uint32
	PID      int32
}

// Supported reports whether [Of] works on this system.
const Supported = false

// Of knows no peer here.
func Of(net.Conn) (c Cred, ok bool) { return Cred{}, false }
