//go:build !linux

package peercred

import "net"

// Cred identifies a process at the time when it connected or started to listen.
type Cred struct {
	UID, GID uint32
	PID      int32
}

// Supported reports whether [Of] works on this system.
const Supported = false

// Of returns false: the system does not provide peers.
func Of(net.Conn) (c Cred, ok bool) { return Cred{}, false }

// MayDescend returns false: the system does not provide peers.
func MayDescend(pid, ancestor int) bool { return false }
