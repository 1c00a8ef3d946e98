package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// files are those of a log, opened one at a time, the oldest first. The one that
// is being written was opened before the others were listed: it may be put aside
// meanwhile, and is read all the same, once.
type files struct {
	path    string
	current *os.File
	old     []aside
}

// openFiles lists the files of a log.
func openFiles(path string) (*files, error) {
	f := &files{path: path}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	current, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		f.current = current
	}
	if f.old, err = asides(path); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if f.current == nil && len(f.old) == 0 {
		return nil, fmt.Errorf("there is no audit log at %s: %w", path, fs.ErrNotExist)
	}
	return f, nil
}

// each calls visit for every file. Files that are removed meanwhile, as they
// are not to be kept, are left out.
func (f *files) each(visit func(path string, current bool, file *os.File) error) error {
	read := false
	for _, a := range f.old {
		if err := checkFile(a.path); err != nil {
			return err
		}
		file, err := os.Open(a.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		read = read || f.isCurrent(file)
		if err := errors.Join(visit(a.path, false, file), file.Close()); err != nil {
			return err
		}
	}
	if f.current == nil || read {
		return nil
	}
	return visit(f.path, true, f.current)
}

func (f *files) isCurrent(file *os.File) bool {
	if f.current == nil {
		return false
	}
	a, errA := f.current.Stat()
	b, errB := file.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (f *files) close() error {
	if f.current == nil {
		return nil
	}
	return f.current.Close()
}
