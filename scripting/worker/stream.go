package worker

import "io"

// stream is what crosses between this process and one that it has started. Who
// reads waits in the system: to have the scheduler wait instead, and wake the
// goroutine, takes more threads, and to wake one costs more than most calls do.
type stream interface {
	io.ReadWriteCloser
	// wake has who waits to read from a process that has ended go on, with an end
	// or with nonsense, for a while: others may hold its side open that it has
	// started where nothing keeps it from that.
	wake()
}
