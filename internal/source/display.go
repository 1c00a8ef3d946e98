package source

import (
	"path"
	"path/filepath"
	"strings"
)

// display returns a path as diagnostics show it.
func (t *Tree) display(name string) string { return path.Join(t.root, name) }

// Relative returns the path, relative to the folder, of a file that
// diagnostics call shown.
func (t *Tree) Relative(shown string) string {
	return strings.TrimPrefix(strings.TrimPrefix(shown, path.Clean(t.root)), "/")
}

// folder returns where the folder of a path is on the disk, "" when it is not there.
func (t *Tree) folder(name string) string {
	if t.path == "" {
		return ""
	}
	return filepath.Join(t.path, filepath.FromSlash(path.Dir(name)))
}
