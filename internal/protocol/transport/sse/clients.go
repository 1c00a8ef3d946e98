package sse

import (
	"sync"

	"github.com/mcpd/mcpd/identity"
)

// clients are those that hold a stream open, by the id of the session.
type clients struct {
	mu   sync.Mutex
	byID map[string]*client
}

func (s *clients) add(id string, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*client{}
	}
	s.byID[id] = c
}

func (s *clients) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// find returns the client, if it is the principal; nil when there is none.
func (s *clients) find(id string, p identity.Principal) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byID[id]; c != nil && c.conn.BelongsTo(p) {
		return c
	}
	return nil
}
