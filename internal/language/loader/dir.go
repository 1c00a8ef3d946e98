package loader

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Dir returns the files below a folder. Unlike
// [os.DirFS] it follows no link out of the folder, and it survives the folder
// being replaced by another of the same name.
func Dir(path string) fs.FS { return dir(path) }

type dir string

// Open opens a file below the folder.
func (d dir) Open(name string) (fs.File, error) {
	var file fs.File
	err := d.within(func(root *os.Root) (err error) {
		file, err = root.FS().Open(name)
		return err
	})
	return file, err
}

// Stat describes a file; it follows links that stay in the folder.
func (d dir) Stat(name string) (info fs.FileInfo, err error) {
	err = d.within(func(root *os.Root) (err error) {
		info, err = fs.Stat(root.FS(), name)
		return err
	})
	return info, err
}

// Lstat describes a file, or the link that has its name.
func (d dir) Lstat(name string) (info fs.FileInfo, err error) {
	err = d.within(func(root *os.Root) (err error) {
		info, err = fs.Lstat(root.FS(), name)
		return err
	})
	return info, err
}

// ReadLink returns where a link leads.
func (d dir) ReadLink(name string) (target string, err error) {
	err = d.within(func(root *os.Root) (err error) {
		target, err = fs.ReadLink(root.FS(), name)
		return err
	})
	return target, err
}

// ReadDir lists a folder in bytewise order.
func (d dir) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = d.within(func(root *os.Root) (err error) {
		entries, err = fs.ReadDir(root.FS(), name)
		return err
	})
	return entries, err
}

// ReadFile reads a file whole.
func (d dir) ReadFile(name string) (content []byte, err error) {
	err = d.within(func(root *os.Root) (err error) {
		content, err = fs.ReadFile(root.FS(), name)
		return err
	})
	return content, err
}

// within opens the folder anew, so that each operation sees the folder that
// has the name now.
func (d dir) within(use func(*os.Root) error) error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer root.Close()
	return use(root)
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
