package streamable

import (
	"container/list"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxKept bounds the events that are kept, in bytes, over all streams, and
	// maxKeptBySession those of one session. What a connection is about to
	// carry comes on top of it. A stream that a connection carries forgets what
	// the connection has carried while there are more.
	maxStoredBytes  = 64 << 20
	maxSessionBytes = 4 << 20
	// eventCost is what an event costs beside its own bytes.
	eventCost = 128
)

// events keeps the streams of legacy sessions with what was sent on them, so
// that a client which lost its connection can go on from where it was
// (2025-11-25 basic/transports, Resumability and Redelivery). It forgets the
// streams first on which nothing has happened for the longest time.
type eventStore struct {
	// fixed at creation
	retention time.Duration // how long a stream is kept on which nothing happens

	mu   sync.Mutex
	byID map[string]*list.Element
	// order holds streams, the one on which something happened last in front.
	order     list.List
	bytes     int
	bySession map[string]int // bytes
	sweeping  bool           // a timer will call sweep
}

// kept is a stream in the order of events.
type storedStream struct {
	stream *stream
	used   time.Time
	bytes  int
}

func newEventStore(age time.Duration) *eventStore {
	return &eventStore{retention: age, byID: map[string]*list.Element{}, bySession: map[string]int{}}
}

// use notes that something happened on a stream, which keeps so many bytes
// now, and forgets others when there are too many.
func (e *eventStore) touch(s *stream, bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.byID[s.id]
	if at == nil {
		at = e.order.PushFront(&storedStream{stream: s})
		e.byID[s.id] = at
	}
	k := at.Value.(*storedStream)
	k.used = time.Now()
	e.order.MoveToFront(at)
	e.count(k, bytes-k.bytes)
	for last := e.order.Back(); last != at && (e.bytes > maxStoredBytes || e.bySession[s.session] > maxSessionBytes); {
		before := last.Prev()
		if e.bytes > maxStoredBytes || last.Value.(*storedStream).stream.session == s.session {
			e.evict(last)
		}
		last = before
	}
	e.arm()
}

// isFull reports whether more is kept than may be, of all streams or of a session.
func (e *eventStore) isFull(session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes > maxStoredBytes || e.bySession[session] > maxSessionBytes
}

// count adds to the bytes of a stream; mu is held.
func (e *eventStore) count(k *storedStream, more int) {
	k.bytes += more
	e.bytes += more
	if e.bySession[k.stream.session] += more; e.bySession[k.stream.session] == 0 {
		delete(e.bySession, k.stream.session)
	}
}

// evict forgets a stream, unless a connection carries it; mu is held.
func (e *eventStore) evict(at *list.Element) {
	k := at.Value.(*storedStream)
	if k.stream.attached.Load() {
		return
	}
	e.order.Remove(at)
	delete(e.byID, k.stream.id)
	e.count(k, -k.bytes)
}

// find returns the stream of the session that the id of an event names, and
// the number of the event.
func (e *eventStore) find(session, id string) (*stream, int) {
	name, number, ok := strings.Cut(id, "_")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return nil, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.byID[name]
	if at == nil || at.Value.(*storedStream).stream.session != session {
		return nil, 0
	}
	return at.Value.(*storedStream).stream, n
}

func (e *eventStore) drop(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := e.order.Back(); at != nil; {
		last := at
		at = at.Prev()
		if last.Value.(*storedStream).stream.session == session {
			e.evict(last)
		}
	}
}

// arm has sweep called when the next stream is old; mu is held.
func (e *eventStore) arm() {
	if last := e.order.Back(); last != nil && !e.sweeping {
		e.sweeping = true
		time.AfterFunc(e.retention-time.Since(last.Value.(*storedStream).used), e.sweep)
	}
}

func (e *eventStore) sweep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sweeping = false
	limit := time.Now().Add(-e.retention)
	for at := e.order.Back(); at != nil && !at.Value.(*storedStream).used.After(limit); at = e.order.Back() {
		if k := at.Value.(*storedStream); k.stream.attached.Load() {
			k.used = time.Now()
			e.order.MoveToFront(at)
			continue
		}
		e.evict(at)
	}
	e.arm()
}
