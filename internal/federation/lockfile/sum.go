package lockfile

import (
	"crypto/sha256"
	"encoding/binary"
)

// Sum returns a hash of what a lock holds, which equal locks share, and no others. It is
// made of the hashes of the definitions, and is not that of the file.
func (l *Lock) Sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, a := range l.upstreams {
		head := binary.AppendUvarint(nil, uint64(len(a.upstream)))
		head = append(head, a.upstream...)
		h.Write(binary.AppendUvarint(head, uint64(len(a.tools))))
		for i := range a.tools {
			h.Write(a.tools[i].sum[:])
		}
		for i := range a.tools {
			if a.tools[i].raw {
				h.Write(binary.AppendUvarint([]byte(rawLine), uint64(i)))
			}
		}
	}
	h.Sum(sum[:0])
	return sum
}
