// Package loader reads the files of a server: the tools directory, as a [Tree], and the config
// file, as a [Config].
//
// A Tree caches files and definitions, so that a change to one file reads only
// that file. It does not trust names and links. A file that is hidden, outside of the
// directory, not regular, or writable by every user is a diagnostic and is never read.
// Production mode also checks the owners of files, by separate methods. The package compiles no
// scripts.
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

// Limits of a tools directory. Exceeding one is a diagnostic.
const (
	maxToolFile   = 1 << 20
	maxReferenced = 4 << 20 // per file that definitions refer to
	maxDepth      = 32
	maxFiles      = 50_000
	// maxEntries bounds the visited directory entries. Entries behind links count once for each
	// link.
	maxEntries = 500_000
	// maxLinks bounds the linked directories on a path, so that cycles of links end. A mounted
	// volume has one.
	maxLinks = 2
	// maxTooDeep is the number of too deep directories after which the scan stops: a few cyclic
	// links produce millions of them.
	maxTooDeep = 20
)

// Tree is the tools directory as last read. Its methods must not be called concurrently, except
// for Open and methods that say otherwise.
type Tree struct {
	fsys fs.FS
	// root is the name of the directory in diagnostics. path is its absolute path on disk, or
	// empty.
	root, path string
	// files are the tool files, by path relative to the directory.
	files map[string]*toolFile
	// order is the result of sorted; nil after a change of files.
	order []*toolFile
	// linked means that files were reached through links, so a change to any other file
	// requires a rescan.
	linked bool
	// swaps are the links to directories that the last rescan followed.
	swaps swaps
	// found are the tool files that a rescan has found and not read yet.
	found []string
	// full means that the directory holds too many files. entries counts the visited entries,
	// tooDeep the directories below the maximum depth.
	full             bool
	entries, tooDeep int
	// problems are the diagnostics of names, links and permissions.
	problems diag.List
	// ownedByOthers are the directories of other users; groupWritable are the directories that
	// their group may write.
	ownedByOthers, groupWritable []string
	// warnings are the warnings for hidden files, by path.
	warnings map[string]diag.Diagnostic

	// opening guards the following fields: refs are the files that definitions have read, by
	// path; referencedBytes is their total size; listings are the listed directories; loads
	// counts updates.
	opening         sync.Mutex
	refs            map[string]*referencedFile
	referencedBytes int
	listings        map[string]listing
	loads           uint64
}

// New returns a tree for a directory with the name root in diagnostics. It reads nothing. A nil
// fsys is an empty directory.
func New(fsys fs.FS, root string) *Tree {
	return &Tree{
		fsys: fsys, root: root, path: Path(fsys), loads: 1,
		files: map[string]*toolFile{}, refs: map[string]*referencedFile{}, listings: map[string]listing{}, warnings: map[string]diag.Diagnostic{},
	}
}

// Update starts a load. It reads the named files again, or everything if all is set or the
// names are not sufficient. It removes the files that the previous load did not use.
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

// rescan reads everything again. It keeps the parsed content of unchanged files.
func (t *Tree) rescan() {
	old := t.files
	t.files, t.order, t.problems, t.warnings = make(map[string]*toolFile, len(old)), nil, nil, map[string]diag.Diagnostic{}
	t.refs, t.referencedBytes, t.listings = map[string]*referencedFile{}, 0, map[string]listing{}
	t.ownedByOthers, t.groupWritable = nil, nil
	t.full, t.linked, t.entries, t.tooDeep, t.found = false, false, 0, 0, nil
	if t.fsys == nil {
		return
	}
	t.swaps = noteSwaps(t.fsys)
	t.scan(".", 0, 0)
	t.readAll(t.found, old)
	t.found = nil
}

// Swapped reports whether a mounted volume or a linked directory was replaced since the last load
// that read everything, so that the definitions may mix old and new files.
func (t *Tree) Swapped() bool { return t.swaps.swapped() }

// scan finds the tool files of a directory and its subdirectories.
func (t *Tree) scan(folder string, depth, links int) {
	if depth > maxDepth || links > maxLinks {
		t.reject(folder, "folder-too-deep", fmt.Sprintf("directories nest deeper than %d levels, or pass more than %d links", maxDepth, maxLinks),
			"look for a link to a parent directory")
		t.tooDeep++
		t.full = t.tooDeep == maxTooDeep
		return
	}
	entries, err := fs.ReadDir(t.fsys, folder)
	if err != nil {
		t.reject(folder, "unreadable-folder", "this directory cannot be read: "+reason(err), "create it, and make it readable for the user that runs mcpd")
		return
	}
	mounted := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == volumeLink })
	if mounted {
		t.swaps.note(path.Join(folder, volumeLink))
	}
	if info, err := fs.Stat(t.fsys, folder); err == nil {
		if writableByOthers(info) && !mounted {
			t.reject(folder, "writable-by-others", "this directory is writable by every user", "run chmod o-w on it: users who may write it decide what mcpd runs")
		}
		if isOwnedByOther(info) {
			t.ownedByOthers = append(t.ownedByOthers, folder)
		}
		if writableByGroup(info) && !mounted {
			t.groupWritable = append(t.groupWritable, folder)
		}
	}
	for _, entry := range entries {
		t.visit(path.Join(folder, entry.Name()), entry, depth, links)
	}
}

func (t *Tree) visit(name string, entry fs.DirEntry, depth, links int) {
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
			t.reject(name, "bad-link", "the target of this link is missing or outside of the directory", "copy the file into the directory instead")
			return
		}
		isDir = info.IsDir()
		links++
		t.linked = true
	}
	switch {
	case isDir:
		if entry.Type()&fs.ModeSymlink != 0 {
			t.swaps.note(name)
		}
		t.scan(name, depth+1, links)
	case isToolFile(name):
		t.found = append(t.found, name)
	}
}

// isFull reports whether a limit is reached. It adds the diagnostic once.
func (t *Tree) isFull() bool {
	t.entries++
	switch {
	case t.full:
	case len(t.found) == maxFiles:
		t.full = true
		t.reject(".", "too-many-files", fmt.Sprintf("the directory contains more than %d tool files", maxFiles), "split it into several servers")
	case t.entries > maxEntries:
		t.full = true
		t.reject(".", "too-many-files", fmt.Sprintf("the directory contains more than %d entries", maxEntries), "look for links to large directories")
	}
	return t.full
}

// apply reads the named paths again. It returns false if a rescan is necessary.
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
			if f := t.read(name, t.files[name]); f != nil {
				t.put(f)
			} else {
				delete(t.files, name)
				t.order = nil
			}
		}
	}
	return len(t.problems) == 0
}

// knowsBelow reports whether a removed path had known files below it.
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
		Severity: diag.Warning, Code: "hidden-file", Summary: "this file is not loaded because it is hidden or a backup",
		Detail: "rename it if it defines tools", Range: diag.Range{File: t.display(name)},
	}
}

// refreshWarning updates the warning for a hidden path.
func (t *Tree) refreshWarning(name string) {
	if slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool { return part != "." && IsHidden(part) }) {
		return
	}
	delete(t.warnings, name)
	if _, err := fs.Stat(t.fsys, name); err == nil {
		t.warnHidden(name)
	}
}

// folderProblems returns the diagnostics of the directory, in a stable order.
func (t *Tree) folderProblems() diag.List {
	problems := slices.Clone(t.problems)
	for _, name := range slices.Sorted(maps.Keys(t.warnings)) {
		problems = append(problems, t.warnings[name])
	}
	return problems
}

// sorted returns the tool files in bytewise order of their paths. The slice is valid until
// files change.
func (t *Tree) sorted() []*toolFile {
	if t.order == nil {
		t.order = slices.SortedFunc(maps.Values(t.files), func(a, b *toolFile) int { return strings.Compare(a.path, b.path) })
	}
	return t.order
}

// display returns the name of a path in diagnostics.
func (t *Tree) display(name string) string { return path.Join(t.root, name) }

// Relative converts a name in diagnostics to a path relative to the directory.
func (t *Tree) Relative(shown string) string { return relative(t.root, shown) }

func relative(root, shown string) string {
	return strings.TrimPrefix(strings.TrimPrefix(shown, path.Clean(root)), "/")
}

// folder returns the directory of a path on disk, or "".
func (t *Tree) folder(name string) string {
	if t.path == "" {
		return ""
	}
	return filepath.Join(t.path, filepath.FromSlash(path.Dir(name)))
}

const (
	// maxListed bounds the files below one directory.
	maxListed = 20_000
	// maxReferencedTotal bounds the bytes of all files that definitions refer to.
	maxReferencedTotal = 256 << 20
)

// ListedFile is a file in a listed directory.
type ListedFile struct {
	// Name is the path below the directory, with slashes.
	Name string
	Size int64
}

// listing is the cached content of a directory.
type listing struct {
	files []ListedFile
	err   error
	// entries counts the visited entries.
	entries int
}

// List returns the regular files at any depth below a directory, in bytewise order of their
// paths. It omits hidden files, links without a file, and names that are not UTF-8. It is safe
// for concurrent use.
func (t *Tree) List(root string) ([]ListedFile, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	known, ok := t.listings[root]
	if !ok {
		known.err = t.walk(root, "", 0, 0, &known)
		switch {
		case errors.Is(known.err, fs.ErrNotExist):
			known.err = errors.New("the directory does not exist")
		case known.err != nil:
			known.err = errors.New(reason(known.err))
		}
		slices.SortFunc(known.files, func(a, b ListedFile) int { return strings.Compare(a.Name, b.Name) })
		t.listings[root] = known
	}
	return known.files, known.err
}

// walk adds the files below a directory to a listing. The caller holds opening. It follows
// linked directories like [Tree.Update], because a mounted ConfigMap contains links.
func (t *Tree) walk(root, below string, depth, links int, l *listing) error {
	if t.fsys == nil {
		return fs.ErrNotExist
	}
	if depth > maxDepth || links > maxLinks {
		return fmt.Errorf("directories nest deeper than %d levels, or pass more than %d links", maxDepth, maxLinks)
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

// list adds a directory entry, or the files below it, to a listing.
func (t *Tree) list(root, name string, entry fs.DirEntry, depth, links int, l *listing) error {
	if l.entries++; l.entries > maxEntries {
		return fmt.Errorf("it contains more than %d entries; links may multiply them", maxEntries)
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
		return fmt.Errorf("it contains more than %d files", maxListed)
	}
	l.files = append(l.files, ListedFile{Name: name, Size: info.Size()})
	return nil
}

// forget drops the listings of directories that contain a path or are below it.
func (t *Tree) forget(name string) {
	for root := range t.listings {
		if name == root || isBelow(name, root) || isBelow(root, name) {
			delete(t.listings, root)
		}
	}
}

func isBelow(name, folder string) bool { return strings.HasPrefix(name, folder+"/") }
