package loader

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Overlay holds texts that replace files on disk, such as documents that an editor has not
// saved, or a test to try. It is safe for concurrent use.
type Overlay struct {
	mu    sync.RWMutex
	texts map[string][]byte // by absolute path
}

// Set replaces the file at an absolute path. The caller must not change text afterwards.
func (o *Overlay) Set(path string, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.texts == nil {
		o.texts = map[string][]byte{}
	}
	o.texts[filepath.Clean(path)] = text
}

// Remove shows the file on disk again.
func (o *Overlay) Remove(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.texts, filepath.Clean(path))
}

// Dir is [Dir] with the texts of the overlay. A text for a file that does not exist is a new file,
// if its directory exists. A text does not change the mode or the owner of its file, and does not
// make a file readable that [Dir] refuses to read.
func (o *Overlay) Dir(path string) fs.FS { return overlaid{dir(path), o} }

// text returns the text for a file below the directory.
func (o overlaid) text(name string) (text []byte, ok bool) {
	o.overlay.mu.RLock()
	defer o.overlay.mu.RUnlock()
	text, ok = o.overlay.texts[filepath.Join(string(o.dir), filepath.FromSlash(name))]
	return text, ok
}

// added returns the texts in a directory that are not in entries.
func (o overlaid) added(name string, entries []fs.DirEntry) (added []fs.DirEntry) {
	folder := filepath.Join(string(o.dir), filepath.FromSlash(name))
	o.overlay.mu.RLock()
	defer o.overlay.mu.RUnlock()
	for file, text := range o.overlay.texts {
		base := filepath.Base(file)
		if filepath.Dir(file) == folder && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == base }) {
			added = append(added, fs.FileInfoToDirEntry(textInfo{name: base, size: len(text)}))
		}
	}
	return added
}

// overlaid is a directory with the texts of an overlay.
type overlaid struct {
	dir
	overlay *Overlay
}

// Open opens a file or its text, or a directory with the new files.
func (o overlaid) Open(name string) (fs.File, error) {
	info, err := o.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		folder, err := o.dir.Open(name)
		if err != nil {
			return nil, err
		}
		return &openFolder{File: folder, list: func() ([]fs.DirEntry, error) { return o.ReadDir(name) }}, nil
	}
	if text, ok := o.text(name); ok {
		return &openText{bytes.NewReader(text), info}, nil
	}
	return o.dir.Open(name)
}

// ReadFile returns a whole file or its text.
func (o overlaid) ReadFile(name string) ([]byte, error) {
	file, err := o.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// Stat describes a file, with the size of its text.
func (o overlaid) Stat(name string) (fs.FileInfo, error) { return o.describe(name, o.dir.Stat) }

// Lstat describes a file or link, with the size of its text.
func (o overlaid) Lstat(name string) (fs.FileInfo, error) { return o.describe(name, o.dir.Lstat) }

func (o overlaid) describe(name string, onDisk func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := onDisk(name)
	text, ok := o.text(name)
	switch {
	case !ok, err == nil && info.IsDir(), err != nil && !errors.Is(err, fs.ErrNotExist):
		return info, err
	case err != nil:
		if folder, missing := o.dir.Stat(path.Dir(name)); missing != nil || !folder.IsDir() {
			return info, err
		}
		info = nil
	}
	return textInfo{path.Base(name), len(text), info}, nil
}

// ReadDir lists a directory with the new files, in bytewise order.
func (o overlaid) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := o.dir.ReadDir(name)
	if err != nil {
		return entries, err
	}
	if added := o.added(name, entries); len(added) > 0 {
		entries = append(entries, added...)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return entries, nil
}

// textInfo describes a text. onDisk describes the file that it replaces; nil for a new file.
type textInfo struct {
	name   string
	size   int
	onDisk fs.FileInfo
}

// newFileMode is the mode of a file that is not yet on disk.
const newFileMode = 0o644

func (i textInfo) Name() string { return i.name }
func (i textInfo) Size() int64  { return int64(i.size) }
func (i textInfo) IsDir() bool  { return i.Mode().IsDir() }

// Mode returns the mode of the file on disk.
func (i textInfo) Mode() fs.FileMode {
	if i.onDisk == nil {
		return newFileMode
	}
	return i.onDisk.Mode()
}

// ModTime returns the time of the file on disk.
func (i textInfo) ModTime() (at time.Time) {
	if i.onDisk != nil {
		at = i.onDisk.ModTime()
	}
	return at
}

// Sys returns the owner of the file on disk.
func (i textInfo) Sys() any {
	if i.onDisk == nil {
		return nil
	}
	return i.onDisk.Sys()
}

// openText is an open text.
type openText struct {
	io.Reader
	info fs.FileInfo
}

func (t *openText) Stat() (fs.FileInfo, error) { return t.info, nil }
func (t *openText) Close() error               { return nil }

// openFolder is an open directory with the new files.
type openFolder struct {
	fs.File
	list   func() ([]fs.DirEntry, error)
	listed bool
	rest   []fs.DirEntry
}

func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.listed {
		entries, err := f.list()
		if err != nil {
			return nil, err
		}
		f.listed, f.rest = true, entries
	}
	if n <= 0 || n > len(f.rest) {
		if n > 0 && len(f.rest) == 0 {
			return nil, io.EOF
		}
		n = len(f.rest)
	}
	entries := f.rest[:n]
	f.rest = f.rest[n:]
	return entries, nil
}
