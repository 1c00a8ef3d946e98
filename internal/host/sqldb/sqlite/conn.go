package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // mends the library when it is initialized
	sqlite3 "modernc.org/sqlite/lib"
)

// Options say how a file is opened.
type Options struct {
	// Path is that of the file, which must exist.
	Path string
	// VFS is the name of the file system that Path is of; "" is the disk.
	VFS string
	// Immutable reads the file without a lock, or a look at what stands beside it.
	Immutable bool
	// Write lets statements change rows.
	Write bool
	// MaxValue bounds each text and blob, and each row that is stored, in bytes.
	MaxValue int
}

// Conn is a connection to a file. One goroutine at a time uses it; any may stop it.
type Conn struct {
	tls *libc.TLS
	db  uintptr
	// flag is C memory that holds why statements must end: 0 while they need not.
	flag uintptr
}

// Why statements end before they are done.
const (
	running int32 = iota
	stopped
	starved
)

// word is the size of the largest thing that is passed by address.
const word = 8

// Open opens a file.
func Open(o Options) (*Conn, error) {
	if !counts {
		return nil, &Error{Code: sqlite3.SQLITE_MISUSE, Message: "SQLite does not count its memory"}
	}
	c := &Conn{tls: libc.NewTLS()}
	var err error
	if c.flag, err = libc.CString(string(make([]byte, word))); err != nil {
		c.tls.Close()
		return nil, err
	}
	if err = c.open(o); err == nil {
		err = c.confine(o)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open(o Options) error {
	name, err := libc.CString(address(o))
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	vfs := uintptr(0)
	if o.VFS != "" {
		if vfs, err = libc.CString(o.VFS); err != nil {
			return err
		}
		defer libc.Xfree(c.tls, vfs)
	}
	flags := int32(sqlite3.SQLITE_OPEN_READONLY)
	if o.Write {
		flags = sqlite3.SQLITE_OPEN_READWRITE
	}
	out := c.tls.Alloc(word)
	defer c.tls.Free(word)
	libc.AtomicStorePInt32(out, 0)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, out, flags|sqlite3.SQLITE_OPEN_FULLMUTEX|sqlite3.SQLITE_OPEN_URI|sqlite3.SQLITE_OPEN_EXRESCODE, vfs)
	c.db = libc.AtomicLoadPUintptr(out)
	return c.failed(rc)
}

// address is the URI of a file.
func address(o Options) string {
	path := filepath.ToSlash(o.Path)
	if path[0] != '/' && o.VFS == "" {
		path = "/" + path // a drive
	}
	query := url.Values{}
	if o.Immutable {
		query.Set("immutable", "1")
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// Stop ends the statement that runs, and each that would follow.
func (c *Conn) Stop() { libc.AtomicStorePInt32(c.flag, stopped) }

// Resume lets statements run again after [Conn.Stop].
func (c *Conn) Resume() { libc.AtomicStorePInt32(c.flag, running) }

// Wait bounds how long a statement waits for the lock of another.
func (c *Conn) Wait(d time.Duration) {
	sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, int32(max(0, d.Milliseconds())))
}

// Close closes the connection. Its statements are closed before.
func (c *Conn) Close() {
	if c.db != 0 {
		sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	}
	libc.Xfree(c.tls, c.flag)
	c.tls.Close()
}

// Error is what SQLite says of a failure.
type Error struct {
	// Code is a primary result code of SQLite.
	Code int
	// Message may hold words of the statement, and of the file.
	Message string
	// Starved says that the statement took more memory than there is.
	Starved bool
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// failed returns the error of a result code, nil when it tells of success.
func (c *Conn) failed(rc int32) error {
	if rc == sqlite3.SQLITE_OK || rc == sqlite3.SQLITE_ROW || rc == sqlite3.SQLITE_DONE {
		return nil
	}
	e := &Error{Code: int(rc & 0xff), Message: "SQLite cannot be started"}
	if c.db != 0 {
		e.Message = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
		e.Starved = libc.AtomicLoadPInt32(c.flag) == starved
	}
	return e
}

// run runs statements of this package.
func (c *Conn) run(text string) error {
	p, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, p)
	return c.failed(sqlite3.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0))
}
