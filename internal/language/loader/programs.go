package loader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Program returns a path without the links that it passes. An error says what
// keeps it from being a program that its owner and group alone can change:
// [fs.ErrNotExist] when nothing is there. The path is then where it would be, and
// empty when that cannot be known.
func (r *Roots) Program(path string) (string, error) {
	real, err := r.Find(path)
	switch {
	case err == nil:
		return real, errors.New("it is a folder")
	case errors.Is(err, fs.ErrNotExist):
		// Whoever may put a file there decides what is run.
		if err := guarded(real, 0); err != nil {
			return real, err
		}
		return real, fs.ErrNotExist
	case !errors.Is(err, errNoFolder):
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
	if err := guarded(path, fs.ModeSticky); err != nil {
		return real, err
	}
	return real, guarded(real, fs.ModeSticky)
}

// guarded returns an error that names a folder above a file which everyone may
// write. The lowest that exists may be so if it has one of the modes, and those
// above it if they are sticky.
func guarded(file string, but fs.FileMode) error {
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
