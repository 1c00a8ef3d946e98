package gate

import (
	"errors"
	"sync/atomic"
)

// DefaultRoom is the default bound of all request bodies under way, in bytes.
const DefaultRoom = 256 << 20

// ErrCrowded ends the reading of a body when those of all requests under way
// are too large together. Another try may succeed.
var ErrCrowded = errors.New("the requests under way are too large together")

// room bounds the memory that the bodies of requests take together. Each
// client alone is within its bounds; many at once need not be.
type room struct {
	size  int64
	taken atomic.Int64
}

// take asks for n bytes more; false means that there is no room for them.
func (r *room) take(n int64) bool {
	if r.taken.Add(n) <= r.size {
		return true
	}
	r.taken.Add(-n)
	return false
}

func (r *room) give(n int64) { r.taken.Add(-n) }
