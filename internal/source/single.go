package source

import (
	"io/fs"
	"path/filepath"
	"slices"
)

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
