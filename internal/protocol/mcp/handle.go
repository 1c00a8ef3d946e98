package mcp

// Session is the session of a legacy client over HTTP, as far as a transport
// has to know it.
type Session struct{ id, version string }

// ID returns what the client repeats.
func (s *Session) ID() string { return s.id }

// Version returns the revision of the session.
func (s *Session) Version() string { return s.version }

// Session returns the session of the peer. When the refusal is not [Served],
// there is none.
func (s *Server) Session(p Peer, id string) (*Session, Refusal) {
	n := s.sessions.find(id, p.Principal)
	if n == nil {
		return nil, UnknownSession
	}
	return &Session{id, n.version}, Served
}
