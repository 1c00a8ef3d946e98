package worker

// shelf is what a process is taught. A process keeps its programs until it ends,
// so that they could take the memory which its calls may have. It is guarded by
// the mutex of the executor.
type shelf struct {
	programs map[[32]byte]struct{}
	bytes    int64 // that these take of the process at most
}

// What a program takes of the process that has compiled it. Programs as they are
// written take 14 to 25 bytes for each of their source, and the densest that were
// found 58; the shortest takes 3 KiB.
const (
	perByte    = 64
	perProgram = 16 << 10
	// programShare is the part of its memory that the programs of a process may have: a
	// quarter, so that a call which goes beyond the memory of its process does so by
	// itself.
	programShare = 4
)

// weight is how many bytes a program takes at most whose source has so many.
func weight(source int) int64 { return perProgram + perByte*int64(source) }

// fits reports whether the process of a call has, or could have, its program. One
// that has none could have any.
func (p *peer) fits(n need) bool {
	if _, known := p.shelf.programs[n.program]; known {
		return true
	}
	return len(p.shelf.programs) == 0 || p.shelf.bytes+weight(n.source) <= p.memory/programShare
}

// put notes that a process is to have a program, or to have it for one call.
func (s *shelf) put(n need) {
	if n.once {
		s.bytes += weight(n.source)
		return
	}
	if _, known := s.programs[n.program]; known {
		return
	}
	if s.programs == nil {
		s.programs = map[[32]byte]struct{}{}
	}
	s.programs[n.program] = struct{}{}
	s.bytes += weight(n.source)
}

// drop notes that a process has a program no more that was for one call.
func (s *shelf) drop(n need) { s.bytes -= weight(n.source) }

// drain has the process with the fewest calls get no more of them when a call of
// a program waits for which none has room, so that it is replaced. One is enough,
// unless its calls keep it for longer. The caller holds mu.
func (e *Executor) drain(n need) {
	var least *peer
	for _, p := range e.peers {
		switch {
		case p.drained && p.memory == n.memory && e.looks.Load()-p.drainedAt < int64(soonest):
			return
		case n.alone || p.alone || p.drained || p.memory != n.memory || p.fits(n):
		case least == nil || p.calls < least.calls:
			least = p
		}
	}
	if least != nil {
		least.drained, least.drainedAt = true, e.looks.Load()
	}
}
