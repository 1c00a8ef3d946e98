//go:build !linux

package peercred

import "net"

// Supported reports whether [Of] works on this system.
const Supported = false

// Of knows no peer here.
func Of(net.Conn) (c Cred, ok bool) { return Cred{}, false }
