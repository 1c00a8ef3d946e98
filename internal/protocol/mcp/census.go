package mcp

// Census counts clients.
type Census struct {
	// Sessions are those of HTTP, which outlive their requests.
	Sessions int
	// Connections are sessions of their own, by the transports of their peers.
	Connections map[string]int
}

// Census counts the clients that there are.
func (s *Server) Census() Census {
	now := Census{Sessions: s.sessions.len(), Connections: map[string]int{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		now.Connections[c.origin.peer.Transport]++
	}
	return now
}
