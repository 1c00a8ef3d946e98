package source

import (
	"path"
	"strings"
)

// display returns a path as diagnostics show it.
func (t *Tree) display(name string) string { return path.Join(t.root, name) }

// Relative returns the path, relative to the folder, of a file that
// diagnostics call shown.
func (t *Tree) Relative(shown string) string {
	return strings.TrimPrefix(strings.TrimPrefix(shown, path.Clean(t.root)), "/")
}
