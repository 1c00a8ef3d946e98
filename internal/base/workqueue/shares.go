package workqueue

import "sync"

// Shares counts the places that owners hold: those that they began and those that joined
// them, such as nested calls, which are never refused. The last eighth of the places is for
// owners that hold less than their share, so that one which takes all it can get leaves some
// to others. Places that joined count against their own owner and against owners with a full
// share, and so cannot take the reserve from others. The zero value is ready for use.
type Shares struct {
	mu     sync.Mutex
	held   map[uint64]int
	begun  int
	joined int
}

// reserved is the part of the places that is left for owners below their share.
const reserved = 8

// Begin takes a place of so many for an owner, and reports whether there was one. Each that
// was taken needs its [Shares.End].
func (s *Shares) Begin(owner uint64, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun >= most {
		return false
	}
	if held := s.held[owner]; s.begun+s.joined >= most-most/reserved && held >= s.share(held, most) {
		return false
	}
	s.begun++
	s.take(owner)
	return true
}

// share returns how many places are due to an owner, one more counted who may come. The
// caller holds mu.
func (s *Shares) share(held, most int) int {
	owners := len(s.held) + 1
	if held == 0 {
		owners++
	}
	return max(most/owners, 1)
}

// Join takes a place for what an owner that has one needs beside, whether there is one left
// or not. Each needs its [Shares.Leave].
func (s *Shares) Join(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	s.take(owner)
}

// take takes a place. The caller holds mu.
func (s *Shares) take(owner uint64) {
	if s.held == nil {
		s.held = map[uint64]int{}
	}
	s.held[owner]++
}

// End gives back a place that was begun.
func (s *Shares) End(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun--
	s.give(owner)
}

// Leave gives back a place that joined.
func (s *Shares) Leave(owner uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined--
	s.give(owner)
}

// give gives a place back. The caller holds mu.
func (s *Shares) give(owner uint64) {
	if s.held[owner]--; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}
