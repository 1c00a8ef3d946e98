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

// patience is how long a statement waits for the lock of another process.
const patience = 5 * time.Second

type file struct{ *Conn }

// Driver connects to SQLite files. The zero Driver is ready for use.
type Driver struct{ vault vault }

func (d *Driver) Close() error { return d.vault.close() }

// Connect opens the file that a grant names, where it was when the grant was
// judged.
func (*Driver) Connect(_ context.Context, g grant.SQL, _ func(context.Context, string) (string, error)) (sqldb.Conn, error) {
	if g.ResolvedPath == "" {
		return nil, sqldb.Fault(scripting.NotFound, "", "the file of the grant does not exist")
	}
	info, err := os.Lstat(g.ResolvedPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sqldb.Fault(scripting.NotFound, "", "the file of the grant does not exist")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, sqldb.Fault(scripting.Denied, "", "the file of the grant is a link, or no regular file")
	}
	if real, err := filepath.EvalSymlinks(g.ResolvedPath); err != nil || real != g.ResolvedPath {
		return nil, sqldb.Fault(scripting.Denied, "", "the file of the grant is not where it was when the tools were loaded")
	}
	c, err := Open(Options{Path: g.ResolvedPath, Write: g.Write, MaxValue: sqldb.MaxText})
	if err != nil {
		return nil, err
	}
	return file{c}, nil
}

// Sound reports true: a statement leaves nothing behind.
func (f file) Sound() bool { return true }

// Run runs the statement of a request, and stops it when the call ends.
func (f file) Run(ctx context.Context, r *sqldb.Request, a *sqldb.Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.Resume()
	f.Wait(min(patience, sqldb.Deadline(ctx)))
	defer context.AfterFunc(ctx, f.Stop)()
	s, err := f.Prepare(r.Statement.Text)
	if err != nil {
		return &refused{err}
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

func (f file) read(s *Stmt, r *sqldb.Request, a *sqldb.Answer) error {
	if r.Method == "query" {
		if err := a.Begin(s.Columns()); err != nil {
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
		if err := a.Room(size); err != nil {
			return err
		}
		for i := range values {
			values[i] = s.Value(i)
		}
		a.Add(values)
	}
}

// refused is an error of SQLite about the text of a statement.
type refused struct{ err error }

func (e *refused) Error() string { return e.err.Error() }

func (e *refused) Unwrap() error { return e.err }

// Explain returns what a script may know of an error of SQLite.
func (*Driver) Explain(err error) (code, text string) {
	var statement *refused
	var failure *Error
	if errors.Is(err, ErrMany) {
		return scripting.Invalid, "it is not one statement"
	}
	if !errors.As(err, &failure) {
		return "", ""
	}
	switch {
	case failure.Starved || failure.Code == sqlite3.SQLITE_NOMEM:
		return scripting.TooLarge, "the statement takes more memory than there is"
	case failure.Code == sqlite3.SQLITE_ERROR && errors.As(err, &statement):
		return scripting.Invalid, sqldb.Rejection("SQLite", failure.Message)
	}
	for _, known := range []struct {
		numbers    []int
		code, told string
	}{
		{[]int{sqlite3.SQLITE_TOOBIG}, scripting.TooLarge, "a text or blob has more than 1 MiB"},
		{[]int{sqlite3.SQLITE_CONSTRAINT}, scripting.Invalid, "a constraint of the database refuses the row"},
		{[]int{sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}, scripting.Invalid, "SQLite cannot run the statement with these values"},
		{[]int{sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}, scripting.Denied, "the statement does what the grant does not allow"},
		{[]int{sqlite3.SQLITE_NOTADB}, scripting.Invalid, "the file is no SQLite database"},
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

// ConnectFile opens a file through a file system in which there is nothing else, and only
// to read it.
func (d *Driver) ConnectFile(f *os.File) (sqldb.Conn, error) {
	system, ticket, err := d.vault.put(f)
	if err != nil {
		return nil, err
	}
	c, err := Open(Options{Path: ticket, VFS: system, Immutable: true, MaxValue: sqldb.MaxText})
	if err != nil {
		d.vault.remove(ticket)
		return nil, err
	}
	return &vaulted{file{c}, func() { d.vault.remove(ticket) }}, nil
}

// vaulted is a connection to a file in a vault.
type vaulted struct {
	file
	remove func()
}

func (v *vaulted) Close() {
	v.file.Close()
	v.remove()
}

// vault is a file system that holds the files which are read now, by tickets.
type vault struct {
	mu     sync.Mutex
	name   string // that SQLite knows it by, "" until a file is read
	system *vfs.FS
	last   int
	held   map[string]*os.File
}

// put returns the name of the file system and that of the file in it.
func (v *vault) put(f *os.File) (system, ticket string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.system == nil {
		if v.name, v.system, err = vfs.New(v); err != nil {
			return "", "", err
		}
		v.held = map[string]*os.File{}
	}
	v.last++
	ticket = "ticket" + strconv.Itoa(v.last)
	v.held[ticket] = f
	return v.name, ticket, nil
}

func (v *vault) remove(ticket string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.held, ticket)
}

// Open returns a file by its ticket, with an offset of its own to the caller.
func (v *vault) Open(ticket string) (fs.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.held[ticket]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: ticket, Err: fs.ErrNotExist}
	}
	return lent{f}, nil
}

type lent struct{ *os.File }

func (lent) Close() error { return nil }

func (v *vault) close() error {
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
