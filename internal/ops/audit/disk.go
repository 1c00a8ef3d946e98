package audit

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// disk is what a log needs of the file system, so that tests can make each
// step of it fail.
type disk interface {
	open(name string, flag int) (file, error)
	rename(from, to string) error
	remove(name string) error
	// syncFolder makes the names in a folder durable.
	syncFolder(name string) error
}

// file is what a log needs of a file.
type file interface {
	io.Reader
	io.Writer
	io.Seeker
	io.Closer
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	// sync makes the content and the size durable.
	sync() error
}

// osDisk is the file system of the machine.
type osDisk struct{}

// osFile is a file of it.
type osFile struct{ *os.File }

func (osDisk) open(name string, flag int) (file, error) {
	if err := checkFile(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(name string) error { return os.Remove(name) }

func (osDisk) syncFolder(name string) error { return atomicfile.SyncDir(name) }

func (f osFile) sync() error { return syncData(f.File) }

// checkFile refuses what is not a file with this one name, which others could
// have put there. One that does not exist is fine.
func checkFile(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a link or something else than a file; move it away")}
	}
	return err
}

// replace writes a file so that after a crash it has the old content or the new.
func replace(d disk, name string, content []byte) error {
	return replaceWith(d, name, content, os.O_TRUNC, file.sync)
}

// replaceSoon is replace without waiting for the disk: after a kill the file has the old
// content or the new, after a loss of power perhaps an older one or none.
func replaceSoon(d disk, name string, content []byte) error {
	return replaceWith(d, name, content, os.O_TRUNC, func(file) error { return nil })
}

// replaceWith writes content beside a file, has settle see to it, and puts it in its place
// last: where it fails the file is what it was. The flag is O_TRUNC, or O_EXCL to refuse a
// file that stands beside it already.
func replaceWith(d disk, name string, content []byte, flag int, settle func(file) error) error {
	fresh := name + ".new"
	f, err := d.open(fresh, os.O_WRONLY|os.O_CREATE|flag)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = settle(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.rename(fresh, name)
}

// readAll reads a file of at most so many bytes.
func readAll(d disk, name string, most int64) ([]byte, error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is longer than anything that belongs there")}
	}
	return content, nil
}

func folderOf(path string) string { return filepath.Dir(path) }
