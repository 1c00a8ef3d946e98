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

// replace writes content beside a file, calls settle for it, and renames it last, so that a
// failure leaves the file as it was. With file.sync as settle the file has the old content or
// the new after a crash. The flag is O_TRUNC, or O_EXCL to refuse a file that stands beside it
// already.
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

// aside is a file that was put aside, or the one that is being written.
type aside struct {
	path string
	// first is the number of its first line.
	first uint64
}

// seqDigits is how many digits the number in a name has: as many as a uint64.
const seqDigits = 20

// asidePath returns what the file of a log is called once it is put aside:
// audit.jsonl becomes audit-00000000000000000001.jsonl.
func asidePath(path string, first uint64) string {
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s-%0*d%s", strings.TrimSuffix(path, extension), seqDigits, first, extension)
}

// asides returns the files of a log that were put aside, the oldest first.
func asides(path string) ([]aside, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	var found []aside
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		number, isLog := strings.CutSuffix(number, extension)
		first, err := strconv.ParseUint(number, 10, 64)
		if !ok || !isLog || err != nil || len(number) != seqDigits {
			continue
		}
		found = append(found, aside{filepath.Join(filepath.Dir(path), entry.Name()), first})
	}
	slices.SortFunc(found, func(a, b aside) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// In returns the logs of a folder: what has a head there, in the order of their names.
func In(folder string) (logs []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for audit logs: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if log := strings.TrimSuffix(path, headPath("")); log != path {
			logs = append(logs, log)
		}
	}
	return logs, nil
}

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
	var err error
	if f.current, err = openKept(path); err != nil {
		return nil, err
	}
	if f.old, err = asides(path); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if f.current == nil && len(f.old) == 0 {
		return nil, fmt.Errorf("there is no audit log at %s: %w", path, fs.ErrNotExist)
	}
	return f, nil
}

// openKept opens a file of a log for reading. It returns nil if the file is gone, as those
// are that are not to be kept.
func openKept(name string) (*os.File, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// each calls visit for every file. Files that are removed meanwhile, as they
// are not to be kept, are left out.
func (f *files) each(visit func(path string, current bool, file *os.File) error) error {
	read := false
	for _, a := range f.old {
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
