package mcp

import (
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// session is what a legacy client and the server have agreed on by initialize.
type session struct {
	// fixed at creation
	id        string // empty on a connection, which is its own session
	mark      string // tells it from all others, and opens nothing
	principal identity.Principal
	version   string
	client    string // name/version
	can       call.Capabilities
	calls     inflight
	ended     chan struct{} // closed when an HTTP session ends

	// seen are the hashes of the lists that the client was given last; nil
	// where it never asked for one.
	seen [kinds]atomic.Pointer[string]
	// logLevel is the least severe level that the client wants to hear of;
	// 0 when it never asked.
	logLevel atomic.Int32

	outgoing outgoing
	// heard counts what the client has sent.
	heard atomic.Uint64
	// ready is set by notifications/initialized, which ends the handshake.
	ready atomic.Bool
	// feed is what the session is to be told.
	feed feed

	mu sync.Mutex
	// streams are the open streams, the newest last. A connection has none.
	streams []*Stream
}

func newSession(p identity.Principal, version, client string) *session {
	s := &session{mark: rand.Text(), principal: p, version: version, client: client, ended: make(chan struct{})}
	s.feed.wake = s.wake
	return s
}

// belongsTo reports whether the session was opened by the principal.
func (s *session) belongsTo(p identity.Principal) bool { return same(s.principal, p) }

// same reports whether two principals are one, by credentials that are bound to
// the same agent: what one has opened acts for that agent.
func same(a, b identity.Principal) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Issuer == b.Issuer && a.Agent == b.Agent
}

// busy reports whether the session must not be forgotten for being idle.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 || s.calls.len() > 0
}

// lastSeen returns the hashes of the lists that the client was given last.
func (s *session) lastSeen() (hashes [kinds]string) {
	for k := range hashes {
		if hash := s.seen[k].Load(); hash != nil {
			hashes[k] = *hash
		}
	}
	return hashes
}
