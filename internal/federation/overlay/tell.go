package overlay

import "time"

// The bounds of how long nothing more is told: share times as long as it took to take in
// what was told.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
	share      = 4
)

// tell tells of what servers offer, and of what has changed of it, until the federation is
// closed.
func (f *Federation) tell() {
	for {
		var took time.Duration
		select {
		case <-f.ended:
			return
		case <-f.listed:
			took = f.relist()
		case <-f.followed.stirred:
			began := time.Now()
			f.update(f.followed.take())
			took = time.Since(began)
		}
		select {
		case <-f.ended:
			return
		case <-time.After(min(max(share*took, leastPause), mostPause)):
		}
	}
}
