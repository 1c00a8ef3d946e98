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
	over chan struct{} // closed once nothing more comes, or nobody reads it
}

// takeLead reports whether a call has the lead from now on: nobody else has, nor
// has had it and read the outcome.
func (p *peer) takeLead(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.led || p.gone || p.flights[f.id] == nil {
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
	p.gone = true
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

// abandon has who reads from a process that was killed go on before it has ended:
// what it has said last is lost, as if it had been killed before.
func (p *peer) abandon() {
	p.mu.Lock()
	p.abandoned = true
	p.mu.Unlock()
	p.stream.wake()
}

// readFor reads until the first frame of a call, and passes the lead on. There
// is no frame when the process ends before.
func (p *peer) readFor(f *flight) (fr frame, ok bool) {
	for {
		to, fr, more := p.read()
		switch {
		case to == nil:
			return fr, false
		case to != f.frames:
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
		var to chan frame
		var fr frame
		if to, fr, more = p.read(); to != nil {
			p.deliver(to, fr)
		}
	}
}

// deliver gives a frame to its call, which takes all that come up to its outcome.
func (p *peer) deliver(to chan<- frame, fr frame) {
	select {
	case to <- fr:
	case <-p.doomed: // it takes no more
	}
}

// read reads a frame, and finds where its call takes it: nowhere when the process
// has ended. More says that the caller still has the lead.
func (p *peer) read() (to chan frame, fr frame, more bool) {
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

// find returns where a call takes frames, which leaves with its outcome, after
// which nothing may come of it. The lead ends with the last.
func (p *peer) find(id uint64, leaves bool) (to chan frame, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flights[id]
	if f == nil || p.abandoned {
		return nil, false
	}
	if leaves {
		delete(p.flights, id)
		p.led = len(p.flights) > 0
		if !p.led && p.gone {
			close(p.lead.over)
		}
	}
	return f.frames, p.led
}
