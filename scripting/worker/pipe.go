package worker

import (
	"bufio"
	"io"
	"sync"
)

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

// pipeReader reads the frames of a pipe, at either end. The goroutine that has the lease
// reads, and handles what it reads: to have another goroutine read, or handle a frame,
// would wake a thread, which costs more than most calls do. Before it waits for something
// else, it passes the lease to a new goroutine.
type pipeReader struct {
	// fixed at creation
	in   *bufio.Reader
	most int // bytes of a frame
	// handle handles a frame. It may pass or release the lease.
	handle func(lease uint64, kind byte, content []byte) error
	// failed is called once, when reading or handling has failed. Nobody reads after that.
	failed func(error)

	mu    sync.Mutex
	lease uint64 // the number of the last lease
	held  bool   // a goroutine has it
}

// acquire takes the lease if no goroutine has it.
func (r *pipeReader) acquire() (lease uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return 0, false
	}
	r.held = true
	r.lease++
	return r.lease, true
}

// read reads frames while its caller has the lease. After a failure nobody gets the lease.
func (r *pipeReader) read(lease uint64) {
	for r.has(lease) {
		kind, content, err := readFrame(r.in, r.most)
		if err == nil {
			err = r.handle(lease, kind, content)
		}
		if err != nil {
			r.failed(err)
			return
		}
	}
}

func (r *pipeReader) has(lease uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held && r.lease == lease
}

// pass has a new goroutine read on, unless the lease was passed already.
func (r *pipeReader) pass(lease uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held && r.lease == lease {
		r.lease++
		go r.read(r.lease)
	}
}

// release gives the lease back. The caller has it.
func (r *pipeReader) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
}
