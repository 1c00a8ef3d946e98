package main

import "runtime"

// ballast is how much the heap grows at least before it is collected, in bytes.
const ballast = 32 << 20

// holdBallast has the collector of a long-running process work less often, until
// release is called: it does once as much was allocated as there is, and a server
// with few tools has next to nothing. The ballast counts for that, and is never
// touched, so that it takes up addresses alone.
func holdBallast() (release func()) {
	weight := make([]byte, ballast)
	return func() { runtime.KeepAlive(weight) }
}
