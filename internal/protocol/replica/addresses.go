package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

const (
	// addressMaxAge is the age from which a look-up also starts to read the list again. It does not wait
	// for that if the process is known.
	addressMaxAge = 2 * time.Second
	// readPause is the least time between two reads: look-ups of processes that are gone share them.
	readPause = 100 * time.Millisecond
)

// addresses knows where the replicas of the fleet are. While the database is away, it knows those that it
// read last.
type addresses struct {
	// fixed at creation
	list   func() ([]state.Replica, error)
	maxAge time.Duration // addressMaxAge, except in tests

	mu sync.Mutex
	// byProcess are the addresses of the last read that succeeded. A process with an old heartbeat is there
	// until another one presumes it dead: after the database was away, all heartbeats are old.
	byProcess map[string]string
	// started is the start of the last read that ended, and err its error.
	started time.Time
	err     error
	// reading is closed at the end of the present read; nil for none.
	reading chan struct{}
	closed  bool
}

// find returns the address of a process. It is "" if there is no such replica, according to a list that
// was read after find was called; the error is the error of that read.
func (a *addresses) find(ctx context.Context, process string) (string, error) {
	called := time.Now()
	for {
		a.mu.Lock()
		address, known := a.byProcess[process]
		fresh, err := a.started.After(called), a.err
		var ended chan struct{}
		if !fresh && (!known || time.Since(a.started) > a.maxAge) {
			ended = a.startRead()
		}
		a.mu.Unlock()
		switch {
		case known:
			return address, nil
		case fresh:
			return "", err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// startRead starts to read the list, unless a read is in progress, and returns a channel that is closed
// at the end of the read. The caller holds mu.
func (a *addresses) startRead() (ended chan struct{}) {
	if a.reading != nil {
		return a.reading
	}
	ended = make(chan struct{})
	if a.closed {
		a.started, a.err = time.Now(), errClosed
		close(ended)
		return ended
	}
	a.reading = ended
	pause := readPause - time.Since(a.started)
	go func() {
		defer close(ended)
		time.Sleep(pause)
		started := time.Now()
		replicas, err := a.list()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.reading, a.started, a.err = nil, started, err
		if err != nil {
			a.err = fmt.Errorf("look up replica: %w", err)
			return
		}
		a.byProcess = map[string]string{}
		for _, r := range replicas {
			if r.Info != nil && r.Info.Process != "" && r.Info.Address != "" {
				a.byProcess[r.Info.Process] = r.Info.Address
			}
		}
	}()
	return ended
}

// close waits for the present read.
func (a *addresses) close() {
	a.mu.Lock()
	a.closed = true
	reading := a.reading
	a.mu.Unlock()
	if reading != nil {
		<-reading
	}
}
