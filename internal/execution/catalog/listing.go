package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// Lists remembers what is made of the lists of a catalog, so that callers who
// see the same share one V. It is safe for concurrent use, and the zero Lists is
// ready for it.
type Lists[V any] struct {
	mu    sync.Mutex
	byKey map[listKey]*V
}

type listKey struct {
	kind   Kind
	hidden [sha256.Size]byte
}

// maxLists bounds what is remembered; a flood of callers who each see something
// else costs time, not memory.
const maxLists = 256

// Of returns what show makes of a list of entries without those that are hidden,
// each marked by a one; hidden is nil where none are. Show is given the indices of
// the others and a content hash of what they show: equal hashes mean equal lists.
func (l *Lists[V]) Of(k Kind, entries []*Entry, hidden []byte, show func(seen []int, hash string) *V) *V {
	key := listKey{k, sha256.Sum256(hidden)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byKey[key]; known != nil {
		return known
	}
	seen, h := make([]int, 0, len(entries)), sha256.New()
	for i, e := range entries {
		if hidden == nil || hidden[i] != 1 {
			seen = append(seen, i)
			h.Write(e.Shown[:])
		}
	}
	v := show(seen, hex.EncodeToString(h.Sum(nil)[:16]))
	if len(l.byKey) < maxLists {
		if l.byKey == nil {
			l.byKey = map[listKey]*V{}
		}
		l.byKey[key] = v
	}
	return v
}

// Faces returns what shows each entry: what showed its item before, or new.
func Faces[T any](entries []*Entry, before []*T, itemOf func(*T) *Item, show func(*Item) *T) []*T {
	known := make(map[*Item]*T, len(before))
	for _, face := range before {
		known[itemOf(face)] = face
	}
	shown := make([]*T, len(entries))
	for i, e := range entries {
		if shown[i] = known[e.Item]; shown[i] == nil {
			shown[i] = show(e.Item)
		}
	}
	return shown
}
