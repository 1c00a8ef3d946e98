package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// Dir returns the files below a directory. Unlike [os.DirFS], it follows no link out of the
// directory, and it keeps working after the directory is replaced.
func Dir(path string) fs.FS { return dir(path) }

type dir string

func (d dir) folder() string { return string(d) }

// Open opens a file below the directory. It does not wait for the writer of a pipe: a file may have
// been replaced by a pipe since its mode was read.
func (d dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := openRoot(d)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := atomicfile.OpenRegularIn(root, filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Stat describes a file.
func (d dir) Stat(name string) (fs.FileInfo, error) {
	return within(d, func(root fs.FS) (fs.FileInfo, error) { return fs.Stat(root, name) })
}

// Lstat describes a file or link. It does not follow a link.
func (d dir) Lstat(name string) (fs.FileInfo, error) {
	return within(d, func(root fs.FS) (fs.FileInfo, error) { return fs.Lstat(root, name) })
}

// ReadLink returns the target of a link.
func (d dir) ReadLink(name string) (string, error) {
	return within(d, func(root fs.FS) (string, error) { return fs.ReadLink(root, name) })
}

// ReadDir lists a directory in bytewise order.
func (d dir) ReadDir(name string) ([]fs.DirEntry, error) {
	return within(d, func(root fs.FS) ([]fs.DirEntry, error) { return fs.ReadDir(root, name) })
}

// ReadFile reads a whole file.
func (d dir) ReadFile(name string) ([]byte, error) {
	file, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// within opens the directory again, so that each operation uses the current directory of this
// name.
func within[T any](d dir, use func(root fs.FS) (T, error)) (found T, err error) {
	root, err := openRoot(d)
	if err != nil {
		return found, err
	}
	defer root.Close()
	return use(root.FS())
}

func openRoot(d dir) (*os.Root, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return root, nil
}

// File returns the files in the directory of a tool file, but lists only that file. Files that
// it refers to can be read; other tool files are not loaded.
func File(path string) fs.FS {
	return single{dir(filepath.Dir(path)), filepath.Base(path)}
}

type single struct {
	dir
	only string
}

// ReadDir lists a directory in bytewise order. For the top directory, it lists only the one
// file.
func (s single) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.dir.ReadDir(name)
	if name == "." {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() != s.only })
	}
	return entries, err
}

// Path returns the absolute path of the directory of [Dir], [File] or [Overlay.Dir], and "" for any
// other fsys.
func Path(fsys fs.FS) string {
	d, ok := fsys.(interface{ folder() string })
	if !ok {
		return ""
	}
	path, err := filepath.Abs(d.folder())
	if err != nil {
		return ""
	}
	return path
}

// swaps are the directories of a load that something may replace while the load reads their files. A
// mounted Kubernetes volume replaces all of its files at once: it renames a new link ..data over
// the old one. Half of the old files and half of the new ones must not be served.
type swaps struct {
	fsys  fs.FS
	root  fs.FileInfo       // of the top directory; nil if it is missing
	links map[string]string // the targets of links, by path
}

// noteSwaps starts to note. It must be called before the first file is read.
func noteSwaps(fsys fs.FS) swaps {
	root, _ := fs.Stat(fsys, ".")
	return swaps{fsys, root, map[string]string{}}
}

// note records where a link leads.
func (s *swaps) note(link string) { s.links[link], _ = fs.ReadLink(s.fsys, link) }

// swapped reports whether a noted directory has been replaced.
func (s *swaps) swapped() bool {
	if s.fsys == nil {
		return false
	}
	if root, _ := fs.Stat(s.fsys, "."); Path(s.fsys) != "" && !os.SameFile(root, s.root) && (root != nil || s.root != nil) {
		return true
	}
	for link, was := range s.links {
		if to, _ := fs.ReadLink(s.fsys, link); to != was {
			return true
		}
	}
	return false
}

// Resolver resolves directories on disk that files name. It caches results, so that all callers
// get the same answer. It is safe for concurrent use.
type Resolver struct {
	mu    sync.Mutex
	known map[string]resolved
}

type resolved struct {
	real string
	err  error
}

// Errors of [Resolver.Resolve] in addition to errors of the system.
var (
	errNotDirectory = errors.New("it is not a directory")
	errRelative     = errors.New("it is relative to a file that is not on disk")
)

// Resolve returns a path with its symbolic links resolved. It returns an error if the path is
// not a directory: [fs.ErrNotExist] if it does not exist. In that case, the path is the one
// where a directory would be, or empty if it is unknown.
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

// ResolveProgram returns a path with its symbolic links resolved. It returns an error if the
// path is not a program that only its owner and group can change: [fs.ErrNotExist] if it does
// not exist. In that case, the path is the one where the program would be, or empty if it is
// unknown.
func (r *Resolver) ResolveProgram(path string) (string, error) {
	real, err := r.Resolve(path)
	switch {
	case err == nil:
		return real, errors.New("it is a directory")
	case errors.Is(err, fs.ErrNotExist):
		// Users who may create the file decide what runs.
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
		return real, errors.New("it is not executable")
	case writable(info):
		return real, errors.New("it is writable by every user")
	}
	// In a sticky directory, others cannot replace the file.
	if err := checkFolders(path, fs.ModeSticky); err != nil {
		return real, err
	}
	return real, checkFolders(real, fs.ModeSticky)
}

// checkFolders returns an error that names a directory above file that every user may write.
// The lowest existing directory may be writable if it has one of the modes in but; those above
// it may be writable if they are sticky.
func checkFolders(file string, but fs.FileMode) error {
	for at := filepath.Dir(file); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return errors.New(reason(err))
		case err == nil && writable(info) && info.Mode()&but == 0:
			return fmt.Errorf("its directory %s is writable by every user", at)
		case err == nil:
			but = fs.ModeSticky
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
