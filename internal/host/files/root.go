package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// root is an open folder.
type root struct {
	*os.Root
	device uint64
}

// openRoot opens the folder of a grant where it was when the grant was judged,
// and refuses it when a link has come to stand in the way since.
func openRoot(g grant.FS) (*root, error) {
	const away = "the root of the grant is not where it was when the tools were loaded"
	if g.Real == "" {
		return nil, fault(scripting.NotFound, "", "the root of the grant does not exist")
	}
	info, err := os.Lstat(g.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault(scripting.NotFound, "", "the root of the grant does not exist")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fault(scripting.Denied, "", "the root of the grant is no folder, or a link")
	}
	opened, err := os.OpenRoot(g.Real)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(g.Real)
	now, nowErr := opened.Stat(".")
	if err != nil || nowErr != nil || real != g.Real || !os.SameFile(info, now) {
		return nil, errors.Join(fault(scripting.Denied, "", away), opened.Close())
	}
	return &root{Root: opened, device: deviceOf(now)}, nil
}

// look describes what a path leads to, itself or the link that has its name.
// What stands above it must be folders of the same file system.
func (r *root) look(q *Request) (fs.FileInfo, error) {
	for i, c := range q.Path {
		if c != '/' {
			continue
		}
		info, err := r.Lstat(q.Path[:i])
		if err != nil {
			return nil, err
		}
		if err := r.folder(q, info); err != nil {
			return nil, err
		}
	}
	return r.Lstat(q.Path)
}

// folder refuses what is no folder of the file system of the root.
func (r *root) folder(q *Request, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault(scripting.Denied, q.given, "the path passes a link, and links are not followed")
	case !info.IsDir():
		return fault(scripting.NotFound, q.given, "there is no such folder")
	case deviceOf(info) != r.device:
		return fault(scripting.Denied, q.given, "it is on another file system than the root")
	}
	return nil
}

// plain refuses what is no regular file of the file system of the root, or has
// another name, which may lie anywhere.
func (r *root) plain(q *Request, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault(scripting.Denied, q.given, "it is a link, and links are not followed")
	case info.IsDir():
		return fault(scripting.Denied, q.given, "it is a folder")
	case !info.Mode().IsRegular():
		return fault(scripting.Denied, q.given, "it is no regular file")
	case deviceOf(info) != r.device:
		return fault(scripting.Denied, q.given, "it is on another file system than the root")
	case namesOf(info) > 1: // none is left of a file that another has replaced meanwhile
		return fault(scripting.Denied, q.given, "the file has another name, too (a hard link)")
	}
	return nil
}

// open opens what a path leads to for reading, and makes sure that it is what
// was looked at: accept judges it before and after.
func (r *root) open(q *Request, flags int, accept func(*Request, fs.FileInfo) error) (file *os.File, info fs.FileInfo, err error) {
	before, err := r.look(q)
	if err != nil {
		return nil, nil, err
	}
	if err := accept(q, before); err != nil {
		return nil, nil, err
	}
	file, err = r.OpenFile(q.Path, os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil {
		err = accept(q, info)
	}
	if err == nil && !os.SameFile(before, info) {
		err = fault(scripting.Unavailable, q.given, "another file has taken its name; try again")
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// remove removes a file.
func (r *root) remove(q *Request) error {
	info, err := r.look(q)
	if err == nil {
		err = r.plain(q, info)
	}
	if err == nil {
		err = r.Remove(q.Path)
	}
	return err
}

// described is the answer to stat.
type described struct {
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970
}

func (r *root) stat(q *Request) (any, error) {
	info, err := r.look(q)
	if err != nil {
		return nil, err
	}
	d := described{Type: typeOf(info.Mode()), Modified: info.ModTime().UnixMilli()}
	switch d.Type {
	case typeFolder:
		return d, r.folder(q, info)
	case typeFile:
		d.Size = info.Size()
		return d, r.plain(q, info)
	}
	return d, nil
}

// The types of what a folder holds.
const (
	typeFile   = "file"
	typeFolder = "folder"
	typeOther  = "other"
)

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return typeFile
	case mode.IsDir():
		return typeFolder
	}
	return typeOther
}

// beside returns the path of a name in the same folder.
func beside(name, other string) string { return path.Join(path.Dir(name), other) }
