package loader

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

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
type Roots struct {
	mu    sync.Mutex
	known map[string]root
}

type root struct {
	real string
	err  error
}

// What [Roots.Find] says beside what the system does.
var (
	errNoFolder = errors.New("it is not a folder")
	errRelative = errors.New("it is relative to a file that is not on the disk")
)

// Find returns a path without the links that it passes. An error says what
// keeps the path from being a folder: [fs.ErrNotExist] when nothing is there. The
// path is then where a folder would be, and empty when that cannot be known.
func (r *Roots) Find(path string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.known[path]
	if !ok {
		found.real, found.err = find(path)
		if r.known == nil {
			r.known = map[string]root{}
		}
		r.known[path] = found
	}
	return found.real, found.err
}

func find(path string) (string, error) {
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
		return errNoFolder
	}
	return nil
}
