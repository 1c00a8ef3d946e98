package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	// maxListed bounds the files below one folder, offered or not.
	maxListed = 20_000
	// maxHeld bounds the bytes of all files that definitions refer to.
	maxHeld = 256 << 20
)

// Listed is a file of a folder below the tools folder.
type Listed struct {
	// Name is the path below the folder, with slashes.
	Name string
	Size int64
}

// listing is what a folder held when it was last looked at.
type listing struct {
	files []Listed
	err   error
	// looked counts the entries that were looked at.
	looked int
}

// List returns the regular files at any depth below a folder, in bytewise order
// of their paths. Hidden files, links that lead to no file, and files whose name
// is no UTF-8 are left out. It is safe for concurrent use.
func (t *Tree) List(root string) ([]Listed, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	known, ok := t.listings[root]
	if !ok {
		known.err = t.walk(root, "", 0, 0, &known)
		switch {
		case errors.Is(known.err, fs.ErrNotExist):
			known.err = errors.New("there is no such folder")
		case known.err != nil:
			known.err = errors.New(reason(known.err))
		}
		slices.SortFunc(known.files, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
		t.listings[root] = known
	}
	return known.files, known.err
}

// walk adds the files below a folder to a listing; opening is held. Linked folders
// are followed as far as [Tree.Update] follows them: a mounted ConfigMap holds
// its folders as links.
func (t *Tree) walk(root, below string, depth, links int, l *listing) error {
	if t.fsys == nil {
		return fs.ErrNotExist
	}
	if depth > maxDepth || links > maxLinks {
		return fmt.Errorf("folders nest deeper than %d, or pass more than %d links", maxDepth, maxLinks)
	}
	entries, err := fs.ReadDir(t.fsys, path.Join(root, below))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := t.list(root, path.Join(below, entry.Name()), entry, depth, links, l); err != nil {
			return err
		}
	}
	return nil
}

// list adds an entry of a folder to a listing, or what is below it.
func (t *Tree) list(root, name string, entry fs.DirEntry, depth, links int, l *listing) error {
	if l.looked++; l.looked > maxEntries {
		return fmt.Errorf("it holds more than %d entries, of which links make many", maxEntries)
	}
	if Hidden(entry.Name()) {
		return nil
	}
	if entry.IsDir() {
		return t.walk(root, name, depth+1, links, l)
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		t.linked = true
		links++
	}
	info, err := fs.Stat(t.fsys, path.Join(root, name))
	switch {
	case err != nil:
		return nil
	case info.IsDir():
		return t.walk(root, name, depth+1, links, l)
	case !info.Mode().IsRegular():
		return nil
	case len(l.files) == maxListed:
		return fmt.Errorf("it holds more than %d files", maxListed)
	}
	l.files = append(l.files, Listed{Name: name, Size: info.Size()})
	return nil
}

// forget drops what was listed of the folders that hold a path, or lie below it.
func (t *Tree) forget(name string) {
	for root := range t.listings {
		if within(name, root) || within(root, name) {
			delete(t.listings, root)
		}
	}
}

// within reports whether a path is a folder or lies below it.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
