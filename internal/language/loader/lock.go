package loader

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/mcpd/mcpd/diag"
)

// Lock is the file of the accepted tools of upstream servers as it was last read.
type Lock struct {
	// Name is how diagnostics call the file.
	Name string
	// Bytes are nil where there is no file, or where Problems tell why it cannot be read.
	Bytes    []byte
	Problems diag.List
	foreign  bool
}

// maxLock bounds the file, in bytes: what reads it refuses as much.
const maxLock = 64 << 20

// ReadLock reads a lock file of the disk. A path of "" is that of none.
func ReadLock(path string) *Lock {
	if path == "" {
		return &Lock{}
	}
	l := &Lock{Name: filepath.ToSlash(filepath.Clean(path))}
	text, info, err := content(Dir(filepath.Dir(path)), filepath.Base(path), maxLock)
	l.foreign = foreign(info)
	switch {
	case err == nil:
		l.Bytes = append([]byte{}, text...)
	case !errors.Is(err, fs.ErrNotExist):
		l.Problems = diag.List{{
			Code: "unreadable-file", Summary: "what was accepted of upstream servers cannot be read: " + reason(err),
			Detail: "make it a regular file that mcpd may read and that not every user may write", Range: diag.Range{File: l.Name},
		}}
	}
	return l
}

// Foreign is [Tree.Foreign] for the file.
func (l *Lock) Foreign() diag.List {
	if !l.foreign {
		return nil
	}
	return ofOthers([]string{l.Name})
}
