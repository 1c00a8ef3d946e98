package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Dir returns the files below a folder. Unlike
// [os.DirFS] it follows no link out of the folder, and it survives the folder
// being replaced by another of the same name.
func Dir(path string) fs.FS { return dir(path) }

type dir string

// Open opens a file below the folder.
func (d dir) Open(name string) (fs.File, error) {
	return within(d, func(root fs.FS) (fs.File, error) { return root.Open(name) })
}

// Stat describes a file.
func (d dir) Stat(name string) (fs.FileInfo, error) {
	return within(d, func(root fs.FS) (fs.FileInfo, error) { return fs.Stat(root, name) })
}

// Lstat describes a file, or the link that has its name.
func (d dir) Lstat(name string) (fs.FileInfo, error) {
	return within(d, func(root fs.FS) (fs.FileInfo, error) { return fs.Lstat(root, name) })
}

// ReadLink returns where a link leads.
func (d dir) ReadLink(name string) (string, error) {
	return within(d, func(root fs.FS) (string, error) { return fs.ReadLink(root, name) })
}

// ReadDir lists a folder in bytewise order.
func (d dir) ReadDir(name string) ([]fs.DirEntry, error) {
	return within(d, func(root fs.FS) ([]fs.DirEntry, error) { return fs.ReadDir(root, name) })
}

// ReadFile reads a file whole.
func (d dir) ReadFile(name string) ([]byte, error) {
	return within(d, func(root fs.FS) ([]byte, error) { return fs.ReadFile(root, name) })
}

// within opens the folder anew, so that each operation sees the folder that
// has the name now.
func within[T any](d dir, use func(root fs.FS) (T, error)) (found T, err error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return found, fmt.Errorf("open folder: %w", err)
	}
	defer root.Close()
	return use(root.FS())
}

// File returns the files below the folder of a tool file, of which no other is a
// tool file: what the file refers to is there, and what stands beside it is not
// loaded.
func File(path string) fs.FS {
	return single{dir(filepath.Dir(path)), filepath.Base(path)}
}

type single struct {
	dir
	only string
}

// ReadDir lists a folder in bytewise order. Of the folder itself it lists the one file.
func (s single) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.dir.ReadDir(name)
	if name == "." {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() != s.only })
	}
	return entries, err
}

// Path returns the absolute path of the folder that [Dir] or [File] has made fsys
// of, and "" when neither has.
func Path(fsys fs.FS) string {
	if one, ok := fsys.(single); ok {
		fsys = one.dir
	}
	d, ok := fsys.(dir)
	if !ok {
		return ""
	}
	path, err := filepath.Abs(string(d))
	if err != nil {
		return ""
	}
	return path
}

// Roots finds folders on the disk that files name, each once: all who ask hear
// the same. It is safe for concurrent use.
type Resolver struct {
	mu    sync.Mutex
	known map[string]resolved
}

type resolved struct {
	real string
	err  error
}

// What [Roots.Find] says beside what the system does.
var (
	errNotDirectory = errors.New("it is not a folder")
	errRelative     = errors.New("it is relative to a file that is not on the disk")
)

// Find returns a path without the links that it passes. An error says what
// keeps the path from being a folder: [fs.ErrNotExist] when nothing is there. The
// path is then where a folder would be, and empty when that cannot be known.
func (r *Resolver) Resolve(path string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.known[path]
	if !ok {
		found.real, found.err = resolve(path)
		if r.known == nil {
			r.known = map[string]resolved{}
		}
		r.known[path] = found
	}
	return found.real, found.err
}

func resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errRelative
	}
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		switch {
		case err == nil && rest != "":
			return filepath.Join(real, rest), fs.ErrNotExist
		case err == nil:
			return real, isFolder(real)
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return "", errors.New(reason(err))
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func isFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errors.New(reason(err))
	case !info.IsDir():
		return errNotDirectory
	}
	return nil
}

// Program returns a path without the links that it passes. An error says what
// keeps it from being a program that its owner and group alone can change:
// [fs.ErrNotExist] when nothing is there. The path is then where it would be, and
// empty when that cannot be known.
func (r *Resolver) ResolveProgram(path string) (string, error) {
	real, err := r.Resolve(path)
	switch {
	case err == nil:
		return real, errors.New("it is a folder")
	case errors.Is(err, fs.ErrNotExist):
		// Whoever may put a file there decides what is run.
		if err := checkFolders(real, 0); err != nil {
			return real, err
		}
		return real, fs.ErrNotExist
	case !errors.Is(err, errNotDirectory):
		return real, err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return real, errors.New(reason(err))
	case !info.Mode().IsRegular():
		return real, errNotRegular
	case !executable(info):
		return real, errors.New("it may not be executed")
	case writable(info):
		return real, errors.New("everyone may write it")
	}
	// In a sticky folder nobody else takes the file's place.
	if err := checkFolders(path, fs.ModeSticky); err != nil {
		return real, err
	}
	return real, checkFolders(real, fs.ModeSticky)
}

// guarded returns an error that names a folder above a file which everyone may
// write. The lowest that exists may be so if it has one of the modes, and those
// above it if they are sticky.
func checkFolders(file string, but fs.FileMode) error {
	for at := filepath.Dir(file); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return errors.New(reason(err))
		case err == nil && writable(info) && info.Mode()&but == 0:
			return fmt.Errorf("everyone may write its folder %s", at)
		case err == nil:
			but = fs.ModeSticky
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
