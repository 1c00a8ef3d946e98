package authn

import (
	"sync"
	"time"
)

// Sparing bounds how often something is told that anybody can make happen: who is
// flooded with requests has enough to do. The zero value is ready; it is safe for
// concurrent use.
type Sparing struct {
	mu       sync.Mutex
	since    time.Time // when the second began that is counted now
	told     int       // in this second
	withheld int       // since something was told
}

// tellings is how much is told in a second.
const tellings = 20

// Tell reports whether something is to be told that happens now, and of how much
// nothing was told since the last time.
func (s *Sparing) Tell(now time.Time) (withheld int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.since); age >= time.Second || age < 0 {
		s.since, s.told = now, 0
	}
	if s.told == tellings {
		s.withheld++
		return 0, false
	}
	s.told++
	withheld, s.withheld = s.withheld, 0
	return withheld, true
}
