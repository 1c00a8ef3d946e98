// Package sqlite runs single statements on SQLite files. Neither the author of the file nor the
// author of the statement is trusted beyond the grant.
//
// A [Conn] is an open file and a [Stmt] a statement on it. The driver for database/sql is not
// used, because it cannot interrupt a statement between two rows, and has no authorizer. Here a
// statement ends when its connection is interrupted, reads and writes only rows, and stays
// within a memory limit for all statements.
package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite" // initializes the library
	sqlite3 "modernc.org/sqlite/lib"
)

// Options configure how a file is opened.
type Options struct {
	// Path is the path of the file, which must exist.
	Path string
	// VFS is the name of the file system of Path; "" is the disk.
	VFS string
	// Immutable reads the file without locks, and ignores files next to it.
	Immutable bool
	// Write allows statements to change rows.
	Write bool
	// MaxValue bounds each text and blob, and each stored row, in bytes.
	MaxValue int
}

// Conn is a connection to a file. It is not safe for concurrent use, except for Interrupt.
type Conn struct {
	tls *libc.TLS
	db  uintptr
	// flag is C memory with the interrupt state of statements; 0 means none.
	flag uintptr
}

// The interrupt states.
const (
	stateRunning int32 = iota
	stateInterrupted
	stateOutOfMemory
)

// wordSize is the size of the largest value passed by address.
const wordSize = 8

func Open(o Options) (*Conn, error) {
	if !memStatusEnabled {
		return nil, &Error{Code: sqlite3.SQLITE_MISUSE, Message: "SQLite does not count its memory"}
	}
	c := &Conn{tls: libc.NewTLS()}
	var err error
	if c.flag, err = libc.CString(string(make([]byte, wordSize))); err != nil {
		c.tls.Close()
		return nil, err
	}
	if err = c.open(o); err == nil {
		err = c.restrict(o)
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
	out := c.tls.Alloc(wordSize)
	defer c.tls.Free(wordSize)
	libc.AtomicStorePInt32(out, 0)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, out, flags|sqlite3.SQLITE_OPEN_FULLMUTEX|sqlite3.SQLITE_OPEN_URI|sqlite3.SQLITE_OPEN_EXRESCODE, vfs)
	c.db = libc.AtomicLoadPUintptr(out)
	return c.errorOf(rc)
}

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

// Interrupt interrupts the running statement, and all following ones.
func (c *Conn) Interrupt() { libc.AtomicStorePInt32(c.flag, stateInterrupted) }

// Resume allows statements again after [Conn.Interrupt].
func (c *Conn) Resume() { libc.AtomicStorePInt32(c.flag, stateRunning) }

// SetBusyTimeout bounds how long a statement waits for a lock.
func (c *Conn) SetBusyTimeout(d time.Duration) {
	sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, int32(max(0, d.Milliseconds())))
}

// Close closes the connection. Close its statements first.
func (c *Conn) Close() {
	if c.db != 0 {
		sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	}
	libc.Xfree(c.tls, c.flag)
	c.tls.Close()
}

// Error is an error of SQLite.
type Error struct {
	Code int
	// Message may contain parts of the statement and of the file.
	Message string
	// OutOfMemory reports whether the statement exceeded the memory limit.
	OutOfMemory bool
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// errorOf returns the error of a result code, or nil on success.
func (c *Conn) errorOf(rc int32) error {
	if rc == sqlite3.SQLITE_OK || rc == sqlite3.SQLITE_ROW || rc == sqlite3.SQLITE_DONE {
		return nil
	}
	e := &Error{Code: int(rc & 0xff), Message: "SQLite cannot be started"}
	if c.db != 0 {
		e.Message = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
		e.OutOfMemory = libc.AtomicLoadPInt32(c.flag) == stateOutOfMemory
	}
	return e
}

func (c *Conn) run(text string) error {
	p, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, p)
	return c.errorOf(sqlite3.Xsqlite3_exec(c.tls, c.db, p, 0, 0, 0))
}

// maxMemory bounds the memory of all statements of the process, in bytes. A statement that
// would exceed it ends.
const maxMemory = 128 << 20

// progressInterval is the number of SQLite VM operations between checks for interrupts.
const progressInterval = 200

// The limits of a statement, in addition to time and memory.
const (
	maxStatement = 64 << 10
	maxColumns   = 500
	maxPattern   = 256 // of LIKE and GLOB, which match a pattern in one operation
)

// memStatusEnabled reports whether SQLite counts its memory. This must be set before the
// process opens its first file.
var memStatusEnabled = enableMemStatus()

func enableMemStatus() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	arguments := tls.Alloc(wordSize)
	defer tls.Free(wordSize)
	return sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, libc.VaList(arguments, int32(1))) == sqlite3.SQLITE_OK
}

// restrict removes all capabilities that statements do not need.
func (c *Conn) restrict(o Options) error {
	for id, limit := range map[int32]int{
		sqlite3.SQLITE_LIMIT_LENGTH: o.MaxValue, sqlite3.SQLITE_LIMIT_SQL_LENGTH: maxStatement,
		sqlite3.SQLITE_LIMIT_COLUMN: maxColumns, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: maxPattern,
		sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
	} {
		sqlite3.Xsqlite3_limit(c.tls, c.db, id, int32(limit))
	}
	for option, on := range map[int32]int32{
		sqlite3.SQLITE_DBCONFIG_DEFENSIVE: 1, sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
		sqlite3.SQLITE_DBCONFIG_DQS_DML: 0, sqlite3.SQLITE_DBCONFIG_DQS_DDL: 0,
		sqlite3.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0, sqlite3.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
	} {
		if err := c.configure(option, on); err != nil {
			return err
		}
	}
	readOnly, write := "ON", uintptr(0)
	if o.Write {
		readOnly, write = "OFF", 1
	}
	if err := c.run(fmt.Sprintf("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -2000; PRAGMA foreign_keys = ON; PRAGMA query_only = %s", readOnly)); err != nil {
		return err
	}
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, progressInterval, funcPtr(progressHandler), c.flag)
	return c.errorOf(sqlite3.Xsqlite3_set_authorizer(c.tls, c.db, funcPtr(authorize), write))
}

func (c *Conn) configure(option, on int32) error {
	arguments := c.tls.Alloc(2 * wordSize)
	defer c.tls.Free(2 * wordSize)
	return c.errorOf(sqlite3.Xsqlite3_db_config(c.tls, c.db, option, libc.VaList(arguments, on, uintptr(0))))
}

// funcPtr returns the C function pointer of a function.
func funcPtr[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

// progressHandler ends a statement if its connection is interrupted or the memory limit is
// exceeded.
func progressHandler(tls *libc.TLS, flag uintptr) int32 {
	if libc.AtomicLoadPInt32(flag) == stateRunning && sqlite3.Xsqlite3_memory_used(tls) > maxMemory {
		libc.AtomicStorePInt32(flag, stateOutOfMemory)
	}
	return libc.AtomicLoadPInt32(flag)
}

// authorize allows reading rows and, unless write is 0, changing them.
func authorize(_ *libc.TLS, write uintptr, action int32, first, second, _, _ uintptr) int32 {
	allowed := false
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE:
		allowed = true
	case sqlite3.SQLITE_FUNCTION:
		switch libc.GoString(second) {
		case "load_extension", "fts3_tokenizer": // they reach beyond the file
		default:
			allowed = true
		}
	case sqlite3.SQLITE_PRAGMA:
		switch libc.GoString(first) {
		case "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "collation_list":
			allowed = true // they describe tables; functions such as pragma_table_info use them
		}
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		allowed = write != 0
	}
	if allowed {
		return sqlite3.SQLITE_OK
	}
	return sqlite3.SQLITE_DENY
}
