// Package loader reads the files that a server is made of: the tools folder,
// as a [Tree], and the operator's file, as a [Config].
//
// A tree remembers what it has read, parsed and decoded, so that the change of
// one file costs the reading of one file. It trusts neither names nor links:
// what is hidden, leaves the folder, is no regular file or may be written by
// every user is a diagnostic and is never read. Which of the files belong to other users
// it says when it is asked, as production mode does. Nothing is compiled here.
package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/diag"
)

// Bounds of a tools folder. What goes beyond is a diagnostic.
const (
	maxToolFile   = 1 << 20
	maxReferenced = 4 << 20 // of a file that definitions refer to
	maxDepth      = 32
	maxFiles      = 50_000
	// maxEntries is how many entries of folders are looked at, of which those
	// behind a link count once for each link.
	maxEntries = 500_000
	// maxLinks is how many linked folders a path may pass, so that links in a
	// circle come to an end. A mounted volume passes one.
	maxLinks = 2
	// maxDeep is how many folders may be too deep until no more are looked for:
	// a few links in a circle make millions.
	maxTooDeep = 20
)

// Tree is the tools folder as it was last read. Its methods are called by one
// goroutine at a time, but for Open, which any number may call.
type Tree struct {
	fsys fs.FS
	// root is how the folder is called in diagnostics, and path is where it is on
	// the disk, empty when it is not there.
	root, path string
	// units are the tool files by path, relative to the folder.
	files map[string]*toolFile
	// linked says that files were reached through links, so that only a rescan
	// tells what the change of another file means for them.
	linked bool
	// full says that the folder holds more files than are read. looked counts
	// the entries that were looked at, deep the folders that are too deep.
	full             bool
	entries, tooDeep int
	// problems are those of the folder itself: of names, links and rights.
	problems diag.List
	// foreign are the folders that are another user's, shared those that their group may write.
	ownedByOthers, groupWritable []string
	// warnings are those of hidden files, by path.
	warnings map[string]diag.Diagnostic

	// opening guards refs, the other files that definitions have read, by path,
	// held, their bytes together, listings, the folders that were listed, and
	// loads, which counts updates.
	opening         sync.Mutex
	refs            map[string]*referencedFile
	referencedBytes int
	listings        map[string]listing
	loads           uint64
}

// New returns the tree of a folder that diagnostics call root. Nothing is read
// yet. A nil fsys is an empty folder.
func New(fsys fs.FS, root string) *Tree {
	return &Tree{
		fsys: fsys, root: root, path: Path(fsys), loads: 1,
		files: map[string]*toolFile{}, refs: map[string]*referencedFile{}, listings: map[string]listing{}, warnings: map[string]diag.Diagnostic{},
	}
}

// Update begins a load: it reads the named files of the folder anew, or
// everything when all is set or when the names alone do not tell what happened.
// What the load before did not use is forgotten.
func (t *Tree) Update(paths []string, all bool) {
	t.opening.Lock()
	maps.DeleteFunc(t.refs, func(_ string, r *referencedFile) bool { return r.used != t.loads })
	t.referencedBytes = 0
	for _, r := range t.refs {
		t.referencedBytes += len(r.bytes)
	}
	t.loads++
	t.opening.Unlock()
	if all || !t.apply(paths) {
		t.rescan()
	}
}

// rescan reads everything anew. Files whose content is unchanged keep their unit.
func (t *Tree) rescan() {
	old := t.files
	t.files, t.problems, t.warnings = make(map[string]*toolFile, len(old)), nil, map[string]diag.Diagnostic{}
	t.refs, t.referencedBytes, t.listings = map[string]*referencedFile{}, 0, map[string]listing{}
	t.ownedByOthers, t.groupWritable = nil, nil
	t.full, t.linked, t.entries, t.tooDeep = false, false, 0, 0
	if t.fsys == nil {
		return
	}
	t.scan(".", 0, 0, old)
}

func (t *Tree) scan(folder string, depth, links int, old map[string]*toolFile) {
	if depth > maxDepth || links > maxLinks {
		t.reject(folder, "folder-too-deep", fmt.Sprintf("folders nest deeper than %d, or pass more than %d links", maxDepth, maxLinks),
			"look for a link that points at a folder above it")
		t.tooDeep++
		t.full = t.tooDeep == maxTooDeep
		return
	}
	entries, err := fs.ReadDir(t.fsys, folder)
	if err != nil {
		t.reject(folder, "unreadable-folder", "this folder cannot be read: "+reason(err), "put it there, readable for the user that runs mcpd")
		return
	}
	mounted := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "..data" })
	if info, err := fs.Stat(t.fsys, folder); err == nil {
		if writableByOthers(info) && !mounted {
			t.reject(folder, "writable-by-others", "this folder is writable by every user", "run chmod o-w on it: who may write here decides what mcpd runs")
		}
		if isOwnedByOther(info) {
			t.ownedByOthers = append(t.ownedByOthers, folder)
		}
		if writableByGroup(info) && !mounted {
			t.groupWritable = append(t.groupWritable, folder)
		}
	}
	for _, entry := range entries {
		t.visit(path.Join(folder, entry.Name()), entry, depth, links, old)
	}
}

func (t *Tree) visit(name string, entry fs.DirEntry, depth, links int, old map[string]*toolFile) {
	if IsHidden(entry.Name()) {
		t.warnHidden(name)
		return
	}
	if t.isFull() {
		return
	}
	isDir := entry.IsDir()
	if entry.Type()&fs.ModeSymlink != 0 {
		info, err := fs.Stat(t.fsys, name)
		if err != nil {
			t.reject(name, "bad-link", "this link leads out of the folder, or nowhere", "copy the file into the folder instead")
			return
		}
		isDir = info.IsDir()
		links++
		t.linked = true
	}
	switch {
	case isDir:
		t.scan(name, depth+1, links, old)
	case isToolFile(name):
		t.read(name, old[name])
	}
}

// isFull reports whether nothing more is read, and says why, once.
func (t *Tree) isFull() bool {
	t.entries++
	switch {
	case t.full:
	case len(t.files) == maxFiles:
		t.full = true
		t.reject(".", "too-many-files", fmt.Sprintf("the folder holds more than %d tool files", maxFiles), "split it over several servers")
	case t.entries > maxEntries:
		t.full = true
		t.reject(".", "too-many-files", fmt.Sprintf("the folder holds more than %d entries", maxEntries), "look for links to folders that hold many others")
	}
	return t.full
}

// apply reads the named paths anew. It reports false when only a rescan can
// tell what happened.
func (t *Tree) apply(paths []string) bool {
	if t.fsys == nil {
		return true
	}
	if t.linked && len(paths) > 0 {
		return false
	}
	for _, name := range paths {
		name = path.Clean(name)
		if !fs.ValidPath(name) || name == "." {
			return false
		}
		if slices.ContainsFunc(strings.Split(name, "/"), IsHidden) {
			t.refreshWarning(name)
			continue
		}
		t.drop(name)
		if entry, err := fs.Lstat(t.fsys, name); err == nil && entry.Mode()&fs.ModeSymlink != 0 {
			return false
		}
		info, err := fs.Stat(t.fsys, name)
		switch {
		case err == nil && info.IsDir():
			return false
		case err != nil && !isToolFile(name):
			if t.knowsBelow(name) {
				return false
			}
		case isToolFile(name):
			t.read(name, t.files[name])
		}
	}
	return len(t.problems) == 0
}

// holds reports whether something was known below a path that is gone.
func (t *Tree) knowsBelow(name string) bool {
	known := slices.Concat(slices.Collect(maps.Keys(t.files)), slices.Collect(maps.Keys(t.warnings)), slices.Collect(maps.Keys(t.refs)))
	return slices.ContainsFunc(known, func(known string) bool { return isBelow(known, name) })
}

func (t *Tree) reject(name, code, summary, detail string) {
	t.problems = append(t.problems, diag.Diagnostic{
		Code: code, Summary: summary, Detail: detail, Range: diag.Range{File: t.display(name)},
	})
}

func (t *Tree) warnHidden(name string) {
	base := path.Base(name)
	if !isToolFile(strings.TrimRight(base, "~")) {
		return
	}
	t.warnings[name] = diag.Diagnostic{
		Severity: diag.Warning, Code: "hidden-file", Summary: "this file is not loaded: hidden and backup files never are",
		Detail: "rename it if it holds tools", Range: diag.Range{File: t.display(name)},
	}
}

// refreshWarning warns of a path with a hidden part when a rescan would.
func (t *Tree) refreshWarning(name string) {
	if slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool { return part != "." && IsHidden(part) }) {
		return
	}
	delete(t.warnings, name)
	if _, err := fs.Stat(t.fsys, name); err == nil {
		t.warnHidden(name)
	}
}

// found returns what is wrong with the folder itself, in a steady order.
func (t *Tree) folderProblems() diag.List {
	problems := slices.Clone(t.problems)
	for _, name := range slices.Sorted(maps.Keys(t.warnings)) {
		problems = append(problems, t.warnings[name])
	}
	return problems
}

// sorted returns the units in bytewise order of their paths.
func (t *Tree) sorted() []*toolFile {
	units := make([]*toolFile, 0, len(t.files))
	for _, u := range t.files {
		units = append(units, u)
	}
	slices.SortFunc(units, func(a, b *toolFile) int { return strings.Compare(a.path, b.path) })
	return units
}

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

const (
	// maxListed bounds the files below one folder, offered or not.
	maxListed = 20_000
	// maxHeld bounds the bytes of all files that definitions refer to.
	maxReferencedTotal = 256 << 20
)

// Listed is a file of a folder below the tools folder.
type ListedFile struct {
	// Name is the path below the folder, with slashes.
	Name string
	Size int64
}

// listing is what a folder held when it was last looked at.
type listing struct {
	files []ListedFile
	err   error
	// looked counts the entries that were looked at.
	entries int
}

// List returns the regular files at any depth below a folder, in bytewise order
// of their paths. Hidden files, links that lead to no file, and files whose name
// is no UTF-8 are left out. It is safe for concurrent use.
func (t *Tree) List(root string) ([]ListedFile, error) {
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
		slices.SortFunc(known.files, func(a, b ListedFile) int { return strings.Compare(a.Name, b.Name) })
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
	if l.entries++; l.entries > maxEntries {
		return fmt.Errorf("it holds more than %d entries, of which links make many", maxEntries)
	}
	if IsHidden(entry.Name()) {
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
	l.files = append(l.files, ListedFile{Name: name, Size: info.Size()})
	return nil
}

// forget drops what was listed of the folders that hold a path, or lie below it.
func (t *Tree) forget(name string) {
	for root := range t.listings {
		if name == root || isBelow(name, root) || isBelow(root, name) {
			delete(t.listings, root)
		}
	}
}

func isBelow(name, folder string) bool { return strings.HasPrefix(name, folder+"/") }
