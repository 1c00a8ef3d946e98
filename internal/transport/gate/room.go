package gate

import (
	"errors"
	"io"
	"sync/atomic"
)

// DefaultRoom is the default bound of all messages under way, in bytes.
const DefaultRoom = 256 << 20

// ErrCrowded ends the reading of a message when all messages under way are too
// large together. Another try may succeed.
var ErrCrowded = errors.New("the messages under way are too large together")

// Room bounds the memory that the messages of all clients take together. Each
// client alone is within its bounds; many at once need not be. A message takes
// room from its first byte until it has been served.
type Room struct {
	size  int64
	taken atomic.Int64
}

// NewRoom returns a room of so many bytes; 0 stands for [DefaultRoom].
func NewRoom(size int64) *Room {
	if size <= 0 {
		size = DefaultRoom
	}
	return &Room{size: size}
}

// Share returns what a message takes of the room: nothing yet.
func (r *Room) Share() *Share { return &Share{room: r} }

// Share is what one message takes of a room.
type Share struct {
	room  *Room
	taken atomic.Int64
}

// Take asks for n bytes more; false means that there is no room for them.
func (s *Share) Take(n int) bool {
	if s.room.taken.Add(int64(n)) > s.room.size {
		s.room.taken.Add(int64(-n))
		return false
	}
	s.taken.Add(int64(n))
	return true
}

// Give gives everything back.
func (s *Share) Give() { s.room.taken.Add(-s.taken.Swap(0)) }

// Reader returns a reader of r that takes room for what is read, and ends with
// [ErrCrowded] when there is none.
func (s *Share) Reader(r io.Reader) io.Reader { return &sharedReader{r, s} }

type sharedReader struct {
	io.Reader
	share *Share
}

func (r *sharedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if !r.share.Take(n) {
		return 0, ErrCrowded
	}
	return n, err
}
