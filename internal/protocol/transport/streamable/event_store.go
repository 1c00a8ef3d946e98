package streamable

import (
	"container/list"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxStoredBytes bounds the stored events of all streams, in bytes, and
	// maxSessionBytes those of one session. Events that a connection has yet to
	// send are not included. Over a limit, an attached stream drops the events
	// that its connection has sent.
	maxStoredBytes  = 64 << 20
	maxSessionBytes = 4 << 20
	// eventCost is the cost of an event in addition to its bytes.
	eventCost = 128
)

// eventStore stores the streams of legacy sessions with their events, so that a
// client that lost its connection can resume them (2025-11-25 basic/transports,
// Resumability and Redelivery). It evicts the least recently used streams
// first.
type eventStore struct {
	// fixed at creation
	retention time.Duration // how long an unused stream is stored

	mu   sync.Mutex
	byID map[string]*list.Element
	// order holds streams, most recently used first.
	order     list.List
	bytes     int
	bySession map[string]int // bytes
	sweeping  bool           // a timer will call sweep
}

// storedStream is a stream in the order of the store.
type storedStream struct {
	stream *stream
	used   time.Time
	bytes  int
}

func newEventStore(age time.Duration) *eventStore {
	return &eventStore{retention: age, byID: map[string]*list.Element{}, bySession: map[string]int{}}
}

// touch marks a stream as used, with its present size, and evicts others if
// there are too many bytes.
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

// isFull reports whether the store, or the part of a session, is over its
// limit.
func (e *eventStore) isFull(session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes > maxStoredBytes || e.bySession[session] > maxSessionBytes
}

// count adds to the bytes of a stream. The caller holds mu.
func (e *eventStore) count(k *storedStream, more int) {
	k.bytes += more
	e.bytes += more
	if e.bySession[k.stream.session] += more; e.bySession[k.stream.session] == 0 {
		delete(e.bySession, k.stream.session)
	}
}

// evict removes a stream, unless it is attached. The caller holds mu.
func (e *eventStore) evict(at *list.Element) {
	k := at.Value.(*storedStream)
	if k.stream.attached.Load() {
		return
	}
	e.order.Remove(at)
	delete(e.byID, k.stream.id)
	e.count(k, -k.bytes)
}

// find returns the session's stream that an event id names, and the number of
// the event.
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

// arm schedules sweep for the next expiry. The caller holds mu.
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
