package mcp

import (
	"container/list"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// session is the state that a legacy client and the server agreed on by
// initialize.
type session struct {
	// fixed at creation
	id        string // empty on a connection, which is its own session
	publicID  string // identifies it in records, and grants nothing
	principal identity.Principal
	version   string
	client    string // name/version
	can       call.Capabilities
	calls     inflight
	ended     chan struct{} // closed when an HTTP session ends

	// seen are the hashes of the lists that the client received last; nil for a
	// list that it never requested.
	seen [kinds]atomic.Pointer[string]
	// logLevel is the least severe level that the client wants; 0 before it asks.
	logLevel atomic.Int32

	serverRequests serverRequests
	// received counts the client's messages.
	received atomic.Uint64
	// ready is set by notifications/initialized, which ends the handshake.
	ready atomic.Bool
	// feed holds the notifications for the session.
	feed feed

	mu sync.Mutex
	// streams are the open streams, newest last; empty on a connection.
	streams []*Stream
}

func newSession(p identity.Principal, version, client string) *session {
	s := &session{publicID: rand.Text(), principal: p, version: version, client: client, ended: make(chan struct{})}
	s.feed.wake = s.wake
	return s
}

// samePrincipal reports whether two credentials belong to one principal and are
// bound to the same agent. A session acts for that agent.
func samePrincipal(a, b identity.Principal) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Issuer == b.Issuer && a.Agent == b.Agent
}

// busy reports whether the session must not expire for being idle.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 || s.calls.len() > 0
}

// lastSeen returns the hashes of the lists that the client received last.
func (s *session) lastSeen() (hashes [kinds]string) {
	for k := range hashes {
		if hash := s.seen[k].Load(); hash != nil {
			hashes[k] = *hash
		}
	}
	return hashes
}

// maxSessions bounds the legacy HTTP sessions. A further one ends the session
// that was idle longest, of the principal with most sessions.
const maxSessions = 10_000

// sessions holds the legacy HTTP sessions, which outlive their requests.
type sessions struct {
	// fixed at creation
	max  int
	idle time.Duration
	// ended is called with each ended session; it must not block.
	ended func(*session)
	// newID returns an id that cannot be guessed.
	newID func(identity.Principal) string

	mu   sync.Mutex
	byID map[string]*list.Element
	// order holds entries, the most recently used first.
	order list.List
	// perHolder counts the sessions of each principal.
	perHolder map[holder]int
}

// holder is a principal, regardless of the agents that its credentials are
// bound to.
type holder struct {
	kind       identity.Kind
	issuer, id string
}

func holderOf(p identity.Principal) holder { return holder{p.Kind, p.Issuer, p.ID} }

type sessionEntry struct {
	session *session
	used    time.Time
}

func newSessions(limit int, idle time.Duration, ended func(*session)) *sessions {
	return &sessions{max: limit, idle: idle, newID: randomID, ended: ended, byID: map[string]*list.Element{}, perHolder: map[holder]int{}}
}

func randomID(identity.Principal) string { return rand.Text() }

// add stores a session and gives it an id that cannot be guessed. At the limit
// it ends an idle session. It returns false if all sessions are busy.
func (s *sessions) add(sess *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	h := holderOf(sess.principal)
	if s.order.Len() >= s.max && !s.evict(h) {
		return false
	}
	s.perHolder[h]++
	sess.id = s.newID(sess.principal)
	s.byID[sess.id] = s.order.PushFront(&sessionEntry{sess, time.Now()})
	return true
}

func (s *sessions) find(id string, p identity.Principal) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.byID[id]
	if e == nil || !samePrincipal(e.Value.(*sessionEntry).session.principal, p) {
		return nil
	}
	s.touch(e)
	n := e.Value.(*sessionEntry).session
	n.received.Add(1)
	return n
}

// SessionVersion returns the protocol revision of the peer's HTTP session with
// the id. ok is false if the peer has no such session.
func (s *Server) SessionVersion(p Peer, id string) (version string, ok bool) {
	n := s.sessions.find(id, p.Principal)
	if n == nil {
		return "", false
	}
	return n.version, true
}

func (s *sessions) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return s.order.Len()
}

func (s *sessions) remove(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[sess.id]; e != nil {
		s.drop(e)
	}
}

func (s *sessions) touch(e *list.Element) {
	e.Value.(*sessionEntry).used = time.Now()
	s.order.MoveToFront(e)
}

// expire ends sessions that were idle too long. It moves busy sessions from the
// end of the order to the front, so that it checks each once.
func (s *sessions) expire() {
	limit := time.Now().Add(-s.idle)
	for e := s.order.Back(); e != nil && e.Value.(*sessionEntry).used.Before(limit); e = s.order.Back() {
		if e.Value.(*sessionEntry).session.busy() {
			s.touch(e)
			continue
		}
		s.drop(e)
	}
}

// evict ends the session that was idle longest, of the principal with most
// sessions, so that opening many sessions ends none of other principals. If all
// its sessions are busy, that principal gets no more. For other principals, the
// session that was idle longest is ended. It returns false if none can be
// ended.
func (s *sessions) evict(by holder) bool {
	largest, count := by, s.perHolder[by]
	for h, n := range s.perHolder {
		if n > count {
			largest, count = h, n
		}
	}
	var oldest *list.Element
	for e := s.order.Back(); e != nil; e = e.Prev() {
		n := e.Value.(*sessionEntry).session
		if n.busy() {
			continue
		}
		if holderOf(n.principal) == largest {
			s.drop(e)
			return true
		}
		if oldest == nil {
			oldest = e
		}
	}
	if largest == by || oldest == nil {
		return false
	}
	s.drop(oldest)
	return true
}

func (s *sessions) drop(e *list.Element) {
	n := s.order.Remove(e).(*sessionEntry).session
	delete(s.byID, n.id)
	h := holderOf(n.principal)
	if s.perHolder[h]--; s.perHolder[h] == 0 {
		delete(s.perHolder, h)
	}
	close(n.ended)
	n.calls.cancelAll()
	s.ended(n)
}
