package loader

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Hash is the SHA-256 of a file.
type Hash = [sha256.Size]byte

// toolFile is a tool file with its parsed and decoded content.
type toolFile struct {
	path  string
	hash  Hash
	bytes []byte
	syntax
	decoded *decoded
	// staged are the definitions with other values of variables, by stage.
	staged map[string]**decoded
	ownership
}

// syntax is the parsed content of a tool file.
type syntax struct {
	parsed   bool
	problems diag.List
	// hasTree is false if the text could not be parsed at all.
	hasTree bool
	// tree is nil if there is none, and while no load needs it: most of the memory of a file
	// would be its tree. Trees with locals are kept, as each load evaluates them.
	tree *hclfile.File
	// incomplete means that the file may define more than is known.
	incomplete bool
}

// parse parses the text of a file.
func parse(src hclfile.Source) (s syntax) {
	s.parsed = true
	s.tree, s.problems = hclfile.Parse(src, hclfile.ToolsKind)
	s.hasTree = s.tree != nil
	s.incomplete = s.problems.HasErrors()
	if s.hasTree {
		s.incomplete = s.tree.Incomplete()
	}
	return s
}

// hasLocals reports whether the file declares local values.
func (s *syntax) hasLocals() bool { return s.tree != nil && len(s.tree.Locals()) > 0 }

// referencedFile is a file that a definition reads. A missing file is cached too.
type referencedFile struct {
	hash  Hash
	bytes []byte
	err   error
	// used is the last load that read the file.
	used uint64
	ownership
}

// read reads a tool file. It keeps before if the content is unchanged, and returns nil for a file
// that no longer exists. It is safe for concurrent use.
func (t *Tree) read(name string, before *toolFile) *toolFile {
	content, info, err := content(t.fsys, name, maxToolFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f := &toolFile{path: name, bytes: content, hash: sha256.Sum256(content), ownership: ownershipOf(info)}
	if err != nil {
		f.hash = sha256.Sum256([]byte(err.Error()))
		f.syntax = syntax{parsed: true, incomplete: true, problems: diag.List{unreadable(t.display(name), "this file cannot be read", " of at most 1 MiB", err)}}
	}
	if before != nil && before.hash == f.hash {
		before.ownership = f.ownership
		return before
	}
	return f
}

// readAll reads tool files on all cores. before holds the earlier state of the files.
func (t *Tree) readAll(names []string, before map[string]*toolFile) {
	read := make([]*toolFile, len(names))
	Parallel(len(names), func(i int) { read[i] = t.read(names[i], before[names[i]]) })
	for _, f := range read {
		if f != nil {
			t.put(f)
		}
	}
}

// put adds a file, or replaces the file with its path.
func (t *Tree) put(f *toolFile) {
	i, found := slices.BinarySearchFunc(t.order, f.path, func(u *toolFile, path string) int { return strings.Compare(u.path, path) })
	if found {
		t.order[i] = f
	} else {
		t.order = nil
	}
	t.files[f.path] = f
}

// Open returns the content of a file that a definition refers to, by path relative to the
// directory, and a hash of the content. A file that cannot be read has a hash too. Open is safe
// for concurrent use.
func (t *Tree) Open(name string) ([]byte, Hash, error) {
	r := t.open(name)
	t.markUsed(name)
	return r.bytes, r.hash, r.err
}

// markUsed marks known files as read by this load.
func (t *Tree) markUsed(names ...string) {
	t.opening.Lock()
	defer t.opening.Unlock()
	for _, name := range names {
		t.refs[name].used = t.loads
	}
}

// usedNames returns the paths of all files that this load has read, in bytewise order.
func (t *Tree) usedNames() []string {
	var names []string
	for name, r := range t.refs {
		if r.used == t.loads {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// open returns a referenced file. It reads the file if it is not cached.
func (t *Tree) open(name string) *referencedFile {
	t.opening.Lock()
	defer t.opening.Unlock()
	if known := t.refs[name]; known != nil {
		return known
	}
	r := &referencedFile{}
	switch {
	case !fs.ValidPath(name):
		r.err = errors.New("the path leaves the tools directory")
	case slices.ContainsFunc(strings.Split(name, "/"), IsHidden):
		r.err = errors.New("hidden files are never read")
	default:
		var info fs.FileInfo
		r.bytes, info, r.err = content(t.fsys, name, maxReferenced)
		r.ownership = ownershipOf(info)
	}
	if t.referencedBytes += len(r.bytes); t.referencedBytes > maxReferencedTotal {
		t.referencedBytes -= len(r.bytes)
		r.bytes, r.err = nil, fmt.Errorf("the files that definitions refer to exceed %d MiB in total", maxReferencedTotal>>20)
	}
	switch {
	case errors.Is(r.err, fs.ErrNotExist):
		r.err = fs.ErrNotExist // importers have their own message
	case r.err != nil:
		r.err = errors.New(reason(r.err))
	}
	r.hash = sha256.Sum256(r.bytes)
	if r.err != nil {
		r.hash = sha256.Sum256([]byte("error: " + r.err.Error()))
	}
	t.refs[name] = r
	return r
}

// drop removes a file from the cache, and the listings that may contain it.
func (t *Tree) drop(name string) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.refs[name]; r != nil {
		t.referencedBytes -= len(r.bytes)
		delete(t.refs, name)
	}
	t.forget(name)
}

// content reads a file of at most limit bytes, and returns its info after it was opened. It
// does not open a file that is not regular, because that could block. It checks the opened file
// again, because the name may refer to another file by then.
func content(fsys fs.FS, name string, limit int64) (content []byte, info fs.FileInfo, err error) {
	found, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, nil, err
	}
	if !found.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	if err := checkInfo(info, limit); err != nil {
		return nil, info, err
	}
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		return nil, info, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return bytes.Clone(content), info, err // without the unused part of the buffer
}

var errNotRegular = errors.New("it is not a regular file")

// checkInfo returns an error if a file must not be read.
func checkInfo(info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return errNotRegular
	case info.Size() > limit:
		return fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	case writableByOthers(info):
		return errors.New("it is writable by every user")
	}
	return nil
}

func isToolFile(name string) bool {
	return strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json")
}

// IsHidden reports base names that editors, mounts and version control create. Files and
// directories with such names are never read, but a link with another name may refer to them.
func IsHidden(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || strings.HasPrefix(base, "#")
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// unreadable reports a file that cannot be read, and why.
func unreadable(name, summary, size string, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "unreadable-file", Summary: summary + ": " + reason(err), Range: diag.Range{File: name},
		Detail: "make it a regular file" + size + " that mcpd can read and other users cannot write",
	}
}

// reason returns the error without the path, because the diagnostic has it.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
