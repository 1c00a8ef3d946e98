package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/state"
)

// states is the server's state store, which is opened when it is first needed.
type states struct {
	// fixed at creation
	path string // empty for a store in memory
	now  func() time.Time

	mu     sync.Mutex
	store  state.Store
	closed bool
}

// open returns the store.
func (s *states) open() (state.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.store != nil:
		return s.store, nil
	case s.closed:
		return nil, errors.New("the state store is closed")
	case s.path == "":
		s.store = state.NewMemory(state.Options{Now: s.now})
		return s.store, nil
	}
	store, err := state.Open(s.path, state.Options{Now: s.now})
	if err != nil {
		return nil, fmt.Errorf("open the state store: %w", err)
	}
	s.store = store
	return store, nil
}

// State returns the store of what outlives calls, which is opened when it is
// first needed, for fronts that keep more in it. [Server.Close] closes it.
func (s *Server) State() (state.Store, error) { return s.states.open() }

// close closes the store, if it was opened.
func (s *states) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.store == nil {
		return nil
	}
	store := s.store
	s.store = nil
	return store.Close()
}
