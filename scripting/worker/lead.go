package worker

import (
	"encoding/binary"
	"errors"
	"time"
)

// readFor reads until the first frame of a call has come, unless another goroutine reads.
// So a call reads itself as long as it waits for nothing but its process. Nobody reads while
// there are no calls.
func (p *peer) readFor(f *flight) {
	lease, ok := p.reader.acquire()
	if !ok {
		return
	}
	p.mu.Lock()
	waits := p.flights[f.id] == f // else its outcome was read meanwhile
	p.mu.Unlock()
	if !waits {
		p.release()
		return
	}
	f.lease = lease
	p.reader.read(lease)
}

// release gives the lease back when no calls are left. A call that has come meanwhile has
// not got the lease, and would wait for ever.
func (p *peer) release() {
	p.reader.release()
	p.mu.Lock()
	calls := len(p.flights)
	p.mu.Unlock()
	if calls == 0 {
		return
	}
	if lease, ok := p.reader.acquire(); ok {
		go p.reader.read(lease)
	}
}

// handle gives a frame to its call, which takes all that come up to its outcome. The call
// that reads passes the lease with its first frame: handling that holds up no other call.
func (p *peer) handle(lease uint64, kind byte, content []byte) error {
	id, size := binary.Uvarint(content)
	if size <= 0 || kind != frameHost && kind != frameDrop && kind != frameOutcome {
		return errFrame
	}
	f, left := p.find(id, kind == frameOutcome)
	if f == nil {
		return errFrame
	}
	reads := f.lease == lease
	select {
	case f.frames <- frame{kind, content[size:]}:
	case <-p.doomed: // it takes no more
	}
	switch {
	case left == 0:
		p.release()
	case reads:
		p.reader.pass(lease)
	}
	return nil
}

// find returns the call with an id, and how many calls are left. A call leaves with its
// outcome: after that nothing may come of it.
func (p *peer) find(id uint64, leaves bool) (f *flight, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f = p.flights[id]; f == nil || p.abandoned {
		return nil, 0
	}
	if leaves {
		delete(p.flights, id)
	}
	return f, len(p.flights)
}

// unread ends the process when nothing that it sends can be read any more.
func (p *peer) unread(err error) {
	why := endUnknown
	if errors.Is(err, errFrame) {
		why = endProtocol
	}
	p.end(why)
	close(p.over)
}

// readOut waits until everything that an ended process has sent was read, and keeps the
// lease, so that nobody reads after that.
func (p *peer) readOut() {
	for wait := lastWait; ; wait = time.Millisecond {
		if _, ok := p.reader.acquire(); ok {
			return
		}
		select {
		case <-p.over:
			return
		case <-time.After(wait):
			p.stream.wake()
		}
	}
}

// abandon has the reader of a killed process stop before the process has ended: what it
// has sent last is lost, as if it had been killed before.
func (p *peer) abandon() {
	p.mu.Lock()
	p.abandoned = true
	p.mu.Unlock()
	p.stream.wake()
}
