package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"time"
)

// lead is the part of the one that reads what a process sends. A call reads
// itself as long as it waits for nothing but its process: to have another
// goroutine read and wake it costs as much as the process does for most calls.
// With its first frame it passes the lead on to a goroutine, if calls are left,
// so that what it does with that holds up none of them. Nobody reads while there
// are no calls.
type lead struct {
	in   *bufio.Reader
	over chan struct{} // closed once nothing more comes
}

// takeLead reports whether a call has the lead from now on: nobody else has, nor
// has had it and read the outcome.
func (p *peer) takeLead(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.led || p.flights[f.id] == nil {
		return false
	}
	p.led = true
	return true
}

// readOut waits until all that a process has sent which has ended was read, and
// nobody reads any more.
func (p *peer) readOut() {
	p.mu.Lock()
	led := p.led
	p.led = true
	p.mu.Unlock()
	for wait := lastWait; led; wait = time.Millisecond {
		select {
		case <-p.lead.over:
			return
		case <-time.After(wait):
			p.stream.wake()
		}
	}
}

// readFor reads until the first frame of a call, and passes the lead on. There
// is no frame when the process ends before.
func (p *peer) readFor(f *flight) (fr frame, ok bool) {
	for {
		to, fr, more := p.read()
		switch {
		case to == nil:
			return fr, false
		case to != f:
			p.deliver(to, fr)
		case more:
			go p.readOn()
			fallthrough
		default:
			return fr, true
		}
	}
}

// readOn reads as long as there are calls.
func (p *peer) readOn() {
	for more := true; more; {
		var to *flight
		var fr frame
		if to, fr, more = p.read(); to != nil {
			p.deliver(to, fr)
		}
	}
}

// deliver gives a frame to its call, which takes all that come up to its outcome.
func (p *peer) deliver(to *flight, fr frame) {
	select {
	case to.frames <- fr:
	case <-p.doomed: // it takes no more
	}
}

// read reads a frame, and finds the call that it is for: none when the process
// has ended. More says that the caller still has the lead.
func (p *peer) read() (to *flight, fr frame, more bool) {
	kind, content, err := readFrame(p.lead.in, maxAnswer)
	if err == nil {
		id, size := binary.Uvarint(content)
		if size > 0 && (kind == frameHost || kind == frameDrop || kind == frameOutcome) {
			to, more = p.find(id, kind == frameOutcome)
		}
		if to != nil {
			return to, frame{kind, content[size:]}, more
		}
	}
	if err == nil || errors.Is(err, errFrame) {
		p.end(endProtocol)
	} else {
		p.end(endUnknown)
	}
	close(p.lead.over)
	return nil, frame{}, false
}

// find returns a call, which leaves with its outcome, after which nothing may
// come of it. The lead ends with the last.
func (p *peer) find(id uint64, leaves bool) (f *flight, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f = p.flights[id]; f == nil {
		return nil, false
	}
	if leaves {
		delete(p.flights, id)
		p.led = len(p.flights) > 0
	}
	return f, p.led
}
