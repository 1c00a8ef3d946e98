package engine

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Auth is an auth block of the operator's file: one way in which callers prove who
// they are. Paths are as the process opens them.
type Auth = hclfile.Auth

// ListenTLS says which files encrypted connections need. Paths are as the process
// opens them.
type ListenTLS = hclfile.ListenTLS

// Auths returns the auth blocks of the operator's file. Without any, nobody has to
// prove anything.
func (s *Snapshot) Auths() []Auth { return slices.Clone(s.catalog.Auths) }

// AuthsMended reports whether the last load found auth blocks that could not be applied,
// and now they can, as the files that they name have come or have changed: then it is
// worth to load again, though none of the server's own files has changed.
func (s *Server) AuthsMended() bool {
	s.mu.Lock()
	refused := s.last.refused
	s.mu.Unlock()
	return len(refused) > 0 && s.options.Front.CheckAuth(refused) == nil
}
