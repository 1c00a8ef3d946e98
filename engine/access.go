package engine

import (
	"slices"

	"github.com/mcpd/mcpd/internal/hclfile"
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
