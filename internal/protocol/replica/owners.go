package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

const (
	// ownersMaxAge is the age from which a look-up also starts to read the list again. It does not wait
	// for that if the process is known.
	ownersMaxAge = 2 * time.Second
	// ownersPause is the least time between two reads: look-ups of processes that are gone share them.
	ownersPause = 100 * time.Millisecond
)

// owners knows where the replicas of the fleet are. While the database is away, it knows those that it
// read last.
type owners struct {
	// fixed at creation
	list   func() ([]state.Replica, error)
	maxAge time.Duration // ownersMaxAge, except in tests

	mu sync.Mutex
	// addresses come from the last read that succeeded. A process with an old heartbeat is there
	// until another one presumes it dead: after the database was away, all heartbeats are old.
	addresses map[string]string
	// started is the start of the last read that ended, and err its error.
	started time.Time
	err     error
	// reading is closed at the end of the present read; nil for none.
	reading chan struct{}
	closed  bool
}

// find returns the address of a process. It is "" if there is no such replica, according to a list that
// was read after find was called; the error is the error of that read.
func (o *owners) find(ctx context.Context, process string) (string, error) {
	called := time.Now()
	for {
		o.mu.Lock()
		address, known := o.addresses[process]
		fresh, err := o.started.After(called), o.err
		var ended chan struct{}
		if !fresh && (!known || time.Since(o.started) > o.maxAge) {
			ended = o.read()
		}
		o.mu.Unlock()
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

// read reads the list in another goroutine, unless one does. The caller holds mu.
func (o *owners) read() (ended chan struct{}) {
	if o.reading != nil {
		return o.reading
	}
	ended = make(chan struct{})
	if o.closed {
		o.started, o.err = time.Now(), errClosed
		close(ended)
		return ended
	}
	o.reading = ended
	pause := ownersPause - time.Since(o.started)
	go func() {
		defer close(ended)
		time.Sleep(pause)
		started := time.Now()
		replicas, err := o.list()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reading, o.started, o.err = nil, started, err
		if err != nil {
			o.err = fmt.Errorf("look up replica: %w", err)
			return
		}
		o.addresses = map[string]string{}
		for _, r := range replicas {
			if r.Info != nil && r.Info.Process != "" && r.Info.Address != "" {
				o.addresses[r.Info.Process] = r.Info.Address
			}
		}
	}()
	return ended
}

// close waits for the present read.
func (o *owners) close() {
	o.mu.Lock()
	o.closed = true
	reading := o.reading
	o.mu.Unlock()
	if reading != nil {
		<-reading
	}
}
