// Package peercred says which process holds the other end of a Unix socket. The
// standard library has the call for one system, and golang.org/x/sys no more.
package peercred

// Cred is a process as it was when it connected, or began to listen.
type Cred struct {
	UID, GID uint32
	PID      int32
}
