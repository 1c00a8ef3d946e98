package engine

import "slices"

// Extension is a part of mcpd that a program links only if it imports it. The packages below
// extensions/ return extensions, for [Options].Extensions. A file that uses a part which the
// program does not have gets a diagnostic that names the package to import.
type Extension interface {
	// Name returns the package that the extension comes from, as in "extensions/sqlite".
	Name() string
}

// Extensions returns [Options].Extensions, for fronts: an extension may be theirs, such as
// the one that checks tokens.
func (s *Server) Extensions() []Extension { return slices.Clone(s.options.Extensions) }
