package mcp

import (
	"container/list"
	"crypto/rand"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// maxSessions is how many legacy sessions of HTTP there may be. One more ends
// the one that was idle longest.
const maxSessions = 10_000

// sessions keeps the legacy sessions of HTTP, which outlive their requests.
type sessions struct {
	// fixed at creation
	most int
	idle time.Duration
	// ended is called with each session that has ended; it must not block.
	ended func(*session)

	mu   sync.Mutex
	byID map[string]*list.Element
	// order holds entries, the one used last in front.
	order list.List
}

type entry struct {
	session *session
	used    time.Time
}

func newSessions(most int, idle time.Duration, ended func(*session)) *sessions {
	return &sessions{most: most, idle: idle, ended: ended, byID: map[string]*list.Element{}}
}

// add keeps a session and gives it an id that cannot be guessed. It makes room
// for it by forgetting those that are idle; false means that none is.
func (s *sessions) add(n *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if s.order.Len() >= s.most && !s.evict() {
		return false
	}
	n.id = rand.Text()
	s.byID[n.id] = s.order.PushFront(&entry{n, time.Now()})
	return true
}

// find returns the session with the id, if it is the principal's.
func (s *sessions) find(id string, p identity.Principal) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.byID[id]
	if e == nil || !e.Value.(*entry).session.belongsTo(p) {
		return nil
	}
	s.touch(e)
	n := e.Value.(*entry).session
	n.heard.Add(1)
	return n
}

// len counts the sessions that have not ended.
func (s *sessions) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return s.order.Len()
}

// remove ends the session.
func (s *sessions) remove(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[n.id]; e != nil {
		s.drop(e)
	}
}

func (s *sessions) touch(e *list.Element) {
	e.Value.(*entry).used = time.Now()
	s.order.MoveToFront(e)
}

// expire ends the sessions that were idle for too long. Busy ones at the end
// of the order move to its front, so that each is looked at once.
func (s *sessions) expire() {
	limit := time.Now().Add(-s.idle)
	for e := s.order.Back(); e != nil && e.Value.(*entry).used.Before(limit); e = s.order.Back() {
		if e.Value.(*entry).session.busy() {
			s.touch(e)
			continue
		}
		s.drop(e)
	}
}

// evict ends the session that was idle longest; false means that all are busy.
func (s *sessions) evict() bool {
	for e := s.order.Back(); e != nil; e = e.Prev() {
		if !e.Value.(*entry).session.busy() {
			s.drop(e)
			return true
		}
	}
	return false
}

func (s *sessions) drop(e *list.Element) {
	n := s.order.Remove(e).(*entry).session
	delete(s.byID, n.id)
	close(n.ended)
	n.calls.cancelAll()
	s.ended(n)
}
