package worker

import "io"

// stream is what crosses between this process and one that it has started. Who
// reads waits in the system: to have the scheduler wait instead, and wake the
// goroutine, takes more threads, and to wake one costs more than most calls do.
type stream interface {
	io.ReadWriteCloser
	// hangUp ends what waits in the stream, and has all that follows fail. What
	// has come by then may still be read.
	hangUp()
}
