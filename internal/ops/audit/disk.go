package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// disk is the part of the file system that a log uses. Tests make each step fail.
type disk interface {
	open(name string, flag int) (file, error)
	rename(from, to string) error
	remove(name string) error
	// syncFolder makes the names in a directory durable.
	syncFolder(name string) error
}

// file is the part of a file that a log uses.
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

// osDisk is the file system of the operating system.
type osDisk struct{}

// osFile is a file of osDisk.
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

// checkFile rejects links and non-regular files, which another user could have put
// there. It accepts a missing file.
func checkFile(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file with one name; move it away")}
	}
	return err
}

// replace writes content to a temporary file, calls settle for it, and renames it. A
// failure leaves the old file unchanged. If settle is file.sync, the file has the old
// or the new content after a crash. flag is O_TRUNC, or O_EXCL to reject an existing
// temporary file.
func replace(d disk, name string, content []byte, flag int, settle func(file) error) error {
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

// readAll reads a file of at most limit bytes.
func readAll(d disk, name string, limit int64) ([]byte, error) {
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("the file is too long")}
	}
	return content, nil
}

// segment is a rotated file, or the current one.
type segment struct {
	path string
	// first is the number of its first line.
	first uint64
}

// seqDigits is the number of digits in a file name, enough for a uint64.
const seqDigits = 20

// segmentPath returns the path of a rotated file: audit.jsonl becomes
// audit-00000000000000000001.jsonl.
func segmentPath(path string, first uint64) string {
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s-%0*d%s", strings.TrimSuffix(path, extension), seqDigits, first, extension)
}

// listSegments returns the rotated files of a log, oldest first.
func listSegments(path string) ([]segment, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	var found []segment
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		number, isLog := strings.CutSuffix(number, extension)
		first, err := strconv.ParseUint(number, 10, 64)
		if !ok || !isLog || err != nil || len(number) != seqDigits {
			continue
		}
		found = append(found, segment{filepath.Join(filepath.Dir(path), entry.Name()), first})
	}
	slices.SortFunc(found, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// FindLogs returns the logs in a directory, sorted by name. A log is recognized by its head.
func FindLogs(folder string) (logs []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("find audit logs: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if log := strings.TrimSuffix(path, headPath("")); log != path {
			logs = append(logs, log)
		}
	}
	return logs, nil
}

// LogOf returns the log that a file belongs to: for a rotated file the path of the current
// file, for any other file its own path.
func LogOf(path string) string {
	extension := filepath.Ext(path)
	stem := strings.TrimSuffix(path, extension)
	cut := len(stem) - seqDigits - 1
	if cut < 1 || stem[cut] != '-' || strings.Trim(stem[cut+1:], "0123456789") != "" {
		return path
	}
	log := stem[:cut] + extension
	if _, err := os.Lstat(headPath(log)); err != nil {
		return path
	}
	return log
}

// segmentReader holds the files of a log, opened one at a time, oldest first. The current file
// is opened before the others are listed: if it is rotated meanwhile, it is still read
// once.
type segmentReader struct {
	path    string
	current *os.File
	old     []segment
}

// openFiles lists the files of a log.
func openFiles(path string) (*segmentReader, error) {
	f := &segmentReader{path: path}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	var err error
	if f.current, err = openKept(path); err != nil {
		return nil, err
	}
	if f.old, err = listSegments(path); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if f.current == nil && len(f.old) == 0 {
		return nil, fmt.Errorf("audit log %s: %w", path, fs.ErrNotExist)
	}
	return f, nil
}

// openKept opens a file of a log for reading. It returns nil if retention removed the
// file.
func openKept(name string) (*os.File, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// each calls visit for every file. It skips files that retention removes meanwhile.
func (r *segmentReader) each(visit func(path string, current bool, file *os.File) error) error {
	read := false
	for _, a := range r.old {
		if err := checkFile(a.path); err != nil {
			return err
		}
		file, err := openKept(a.path)
		if err != nil {
			return err
		}
		if file == nil {
			continue
		}
		read = read || r.isCurrent(file)
		if err := errors.Join(visit(a.path, false, file), file.Close()); err != nil {
			return err
		}
	}
	if r.current == nil || read {
		return nil
	}
	return visit(r.path, true, r.current)
}

func (r *segmentReader) isCurrent(file *os.File) bool {
	if r.current == nil {
		return false
	}
	a, errA := r.current.Stat()
	b, errB := file.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (r *segmentReader) close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}
