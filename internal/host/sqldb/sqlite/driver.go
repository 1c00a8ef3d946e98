package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// lockTimeout is how long a statement waits for the lock of another process.
const lockTimeout = 5 * time.Second

type file struct{ *Conn }

// Driver connects to SQLite files. The zero Driver is ready to use.
type Driver struct{ vfs fileVFS }

func (d *Driver) Close() error { return d.vfs.close() }

// Connect opens the file of a grant, if it is where it was when the grant was loaded.
func (*Driver) Connect(_ context.Context, g grant.SQL, _ func(context.Context, string) (string, error)) (sqldb.Conn, error) {
	if g.ResolvedPath == "" {
		return nil, sqldb.NewHostError(scripting.NotFound, "", "the file of the grant does not exist")
	}
	info, err := os.Lstat(g.ResolvedPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sqldb.NewHostError(scripting.NotFound, "", "the file of the grant does not exist")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, sqldb.NewHostError(scripting.Denied, "", "the file of the grant is a link, or not a regular file")
	}
	if real, err := filepath.EvalSymlinks(g.ResolvedPath); err != nil || real != g.ResolvedPath {
		return nil, sqldb.NewHostError(scripting.Denied, "", "the file of the grant has moved since the tools were loaded")
	}
	c, err := Open(Options{Path: g.ResolvedPath, Write: g.Write, MaxValue: sqldb.MaxText})
	if err != nil {
		return nil, err
	}
	return file{c}, nil
}

// Healthy returns true: a statement leaves no state behind.
func (f file) Healthy() bool { return true }

// Run runs a query, and interrupts it when ctx is done.
func (f file) Run(ctx context.Context, r *sqldb.Query, a *sqldb.Rows) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.Resume()
	f.SetBusyTimeout(min(lockTimeout, sqldb.Deadline(ctx)))
	defer context.AfterFunc(ctx, f.Interrupt)()
	s, err := f.Prepare(r.Statement.Text)
	if err != nil {
		return &statementError{err}
	}
	defer s.Close()
	for i, v := range r.Values {
		if b, ok := v.(bool); ok {
			v = int64(0)
			if b {
				v = int64(1)
			}
		}
		if err := s.Bind(i, v); err != nil {
			return err
		}
	}
	if err := f.read(s, r, a); err != nil {
		return err
	}
	if !s.ReadsOnly() {
		a.Changes = f.Changes()
	}
	return nil
}

func (f file) read(s *Stmt, r *sqldb.Query, a *sqldb.Rows) error {
	if r.Method == "query" {
		if err := a.SetColumns(s.Columns()); err != nil {
			return err
		}
	}
	for {
		more, err := s.Step()
		if err != nil || !more {
			return err
		}
		if r.Method != "query" {
			continue
		}
		size, values := 0, make([]any, len(a.Columns))
		for i := range values {
			size += s.Size(i)
		}
		if err := a.CheckSize(size); err != nil {
			return err
		}
		for i := range values {
			values[i] = s.Value(i)
		}
		a.Add(values)
	}
}

// statementError is an error of SQLite about the text of a statement.
type statementError struct{ err error }

func (e *statementError) Error() string { return e.err.Error() }

func (e *statementError) Unwrap() error { return e.err }

// Explain returns the code and message of a SQLite error for scripts.
func (*Driver) Explain(err error) (code, text string) {
	var statement *statementError
	var failure *Error
	if errors.Is(err, ErrNotSingleStatement) {
		return scripting.Invalid, "it is not one statement"
	}
	if !errors.As(err, &failure) {
		return "", ""
	}
	switch {
	case failure.OutOfMemory || failure.Code == sqlite3.SQLITE_NOMEM:
		return scripting.TooLarge, "there is not enough memory for the statement"
	case failure.Code == sqlite3.SQLITE_ERROR && errors.As(err, &statement):
		return scripting.Invalid, sqldb.Rejection("SQLite", failure.Message)
	}
	for _, known := range []struct {
		numbers    []int
		code, told string
	}{
		{[]int{sqlite3.SQLITE_TOOBIG}, scripting.TooLarge, "a text or blob has more than 1 MiB"},
		{[]int{sqlite3.SQLITE_CONSTRAINT}, scripting.Invalid, "a constraint of the database rejects the row"},
		{[]int{sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}, scripting.Invalid, "SQLite cannot run the statement with these values"},
		{[]int{sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}, scripting.Denied, "the grant does not allow the statement"},
		{[]int{sqlite3.SQLITE_NOTADB}, scripting.Invalid, "the file is not a SQLite database"},
		{[]int{sqlite3.SQLITE_CORRUPT}, scripting.Unavailable, "the database is damaged, or is being written"},
		{[]int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}, scripting.Unavailable, "another program has locked the database"},
	} {
		for _, number := range known.numbers {
			if failure.Code == number {
				return known.code, known.told
			}
		}
	}
	return "", ""
}

// ConnectFile opens a file read-only through a file system that contains nothing else.
func (d *Driver) ConnectFile(f *os.File) (sqldb.Conn, error) {
	system, ticket, err := d.vfs.add(f)
	if err != nil {
		return nil, err
	}
	c, err := Open(Options{Path: ticket, VFS: system, Immutable: true, MaxValue: sqldb.MaxText})
	if err != nil {
		d.vfs.remove(ticket)
		return nil, err
	}
	return &vfsConn{file{c}, func() { d.vfs.remove(ticket) }}, nil
}

// vfsConn is a connection to a file in a fileVFS.
type vfsConn struct {
	file
	remove func()
}

func (v *vfsConn) Close() {
	v.file.Close()
	v.remove()
}

// fileVFS is a file system of the files that are currently read, by ticket.
type fileVFS struct {
	mu     sync.Mutex
	name   string // its name in SQLite, "" until the first file is added
	system *vfs.FS
	last   int
	files  map[string]*os.File
}

// add returns the name of the file system and the name of the file in it.
func (v *fileVFS) add(f *os.File) (system, ticket string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.system == nil {
		if v.name, v.system, err = vfs.New(v); err != nil {
			return "", "", err
		}
		v.files = map[string]*os.File{}
	}
	v.last++
	ticket = "ticket" + strconv.Itoa(v.last)
	v.files[ticket] = f
	return v.name, ticket, nil
}

func (v *fileVFS) remove(ticket string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.files, ticket)
}

// Open returns a file by ticket. The caller has its own offset.
func (v *fileVFS) Open(ticket string) (fs.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.files[ticket]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: ticket, Err: fs.ErrNotExist}
	}
	return borrowedFile{f}, nil
}

type borrowedFile struct{ *os.File }

func (borrowedFile) Close() error { return nil }

func (v *fileVFS) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.system == nil {
		return nil
	}
	if err := v.system.Close(); err != nil && !errors.Is(err, vfs.ErrInUse) {
		return err
	}
	v.system = nil
	return nil
}
