package lockfile

import (
	"cmp"
	"slices"
	"strings"
)

// Fill returns the lock with those upstreams of another that it does not know and that its
// file has room for. The shortest come first: one that lists much takes the room of none
// that lists little. It is the lock itself where that is none.
func (l *Lock) Fill(other *Lock) *Lock {
	shortest := slices.SortedFunc(slices.Values(other.upstreams), func(a, b accepted) int {
		return cmp.Or(a.len()-b.len(), strings.Compare(a.upstream, b.upstream))
	})
	room := maxFile - l.Len()
	for _, a := range shortest {
		if _, known := l.find(a.upstream); !known && a.len() <= room {
			l, room = l.with(a), room-a.len()
		}
	}
	return l
}
