package loader

import (
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

// unit is one tool file and what it was parsed and decoded into.
type toolFile struct {
	path    string
	hash    Hash
	bytes   []byte
	file    *hclfile.File
	parsed  diag.List
	decoded *decoded
	// staged is what the file defines with other values of variables, by stages.
	staged map[string]**decoded
	ownership
}

// incomplete reports whether the file may define more than is known of it.
func (u *toolFile) incomplete() bool {
	if u.file == nil {
		return u.parsed.HasErrors()
	}
	return u.file.Incomplete()
}

// ref is a file that a definition reads. A missing one is remembered as such.
type referencedFile struct {
	hash  Hash
	bytes []byte
	err   error
	// used is the last load that read the file for what it serves.
	used uint64
	ownership
}

// read reads a tool file. It keeps before when the content is unchanged, and
// forgets the file when it is gone.
func (t *Tree) read(name string, before *toolFile) {
	content, info, err := content(t.fsys, name, maxToolFile)
	if errors.Is(err, fs.ErrNotExist) {
		delete(t.files, name)
		return
	}
	u := &toolFile{path: name, bytes: content, hash: sha256.Sum256(content), ownership: ownershipOf(info)}
	if err != nil {
		u.hash = sha256.Sum256([]byte(err.Error()))
		u.parsed = diag.List{unreadable(t.display(name), "this file cannot be used", " of at most 1 MiB", err)}
	}
	if before != nil && before.hash == u.hash {
		before.ownership = u.ownership
		t.files[name] = before
		return
	}
	t.files[name] = u
}

// Open returns the content of a file that a definition refers to, by its path
// relative to the folder, and a hash that changes with the content. A file that
// cannot be read has a hash too. It is safe for concurrent use.
func (t *Tree) Open(name string) ([]byte, Hash, error) {
	r := t.open(name)
	t.markUsed(name)
	return r.bytes, r.hash, r.err
}

// use marks files that are known as read by this load.
func (t *Tree) markUsed(names ...string) {
	t.opening.Lock()
	defer t.opening.Unlock()
	for _, name := range names {
		t.refs[name].used = t.loads
	}
}

// used returns the paths of all that this load has read, in bytewise order.
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

// open returns what is known of a file, which it reads when nothing is.
func (t *Tree) open(name string) *referencedFile {
	t.opening.Lock()
	defer t.opening.Unlock()
	if known := t.refs[name]; known != nil {
		return known
	}
	r := &referencedFile{}
	switch {
	case !fs.ValidPath(name):
		r.err = errors.New("the path leaves the tools folder")
	case slices.ContainsFunc(strings.Split(name, "/"), IsHidden):
		r.err = errors.New("hidden files are never read")
	default:
		var info fs.FileInfo
		r.bytes, info, r.err = content(t.fsys, name, maxReferenced)
		r.ownership = ownershipOf(info)
	}
	if t.referencedBytes += len(r.bytes); t.referencedBytes > maxReferencedTotal {
		t.referencedBytes -= len(r.bytes)
		r.bytes, r.err = nil, fmt.Errorf("the files that definitions name hold more than %d MiB together", maxReferencedTotal>>20)
	}
	switch {
	case errors.Is(r.err, fs.ErrNotExist):
		r.err = fs.ErrNotExist // importers tell it in their own words
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

// drop forgets what is known of a file, and of the folders that may list it.
func (t *Tree) drop(name string) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if r := t.refs[name]; r != nil {
		t.referencedBytes -= len(r.bytes)
		delete(t.refs, name)
	}
	t.forget(name)
}

// content reads a file of at most limit bytes, and says what it is once it is open.
// What is no regular file is not even opened, for that could wait for ever; what was
// opened is looked at again, for the name may have come to mean another file.
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
		return nil, info, fmt.Errorf("it grew to more than %d bytes", limit)
	}
	return content, info, err
}

var errNotRegular = errors.New("it is not a regular file")

// usable says what keeps a file from being read.
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

// Hidden reports the base names of what editors, mounts and version control
// make for themselves. Such files and folders are never read under these names,
// though a link of another name may lead there.
func IsHidden(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || strings.HasPrefix(base, "#")
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// unreadable reports a file that cannot be read, and why.
func unreadable(name, summary, size string, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "unreadable-file", Summary: summary + ": " + reason(err), Range: diag.Range{File: name},
		Detail: "make it a regular file" + size + " that mcpd may read and that not every user may write",
	}
}

// reason returns what went wrong without the path, which the diagnostic names anyway.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
