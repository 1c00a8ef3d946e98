package sqlite

import (
	"fmt"
	"slices"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxMemory bounds what all statements of the process have at once, in bytes.
// One that would take more ends.
const maxMemory = 128 << 20

// steps is how many operations of SQLite's machine lie between two looks at what
// would end a statement.
const steps = 200

// The bounds of a statement, beside its time and its memory.
const (
	maxStatement = 64 << 10
	maxColumns   = 500
	maxPattern   = 256 // of LIKE and GLOB, each of which is matched in one operation
)

// counts says that SQLite counts its memory, which has to be settled before the
// process opens its first file.
var counts = count()

func count() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	arguments := tls.Alloc(word)
	defer tls.Free(word)
	return sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, libc.VaList(arguments, int32(1))) == sqlite3.SQLITE_OK
}

// confine takes from a connection all that statements do not need.
func (c *Conn) confine(o Options) error {
	for id, most := range map[int32]int{
		sqlite3.SQLITE_LIMIT_LENGTH: o.MaxValue, sqlite3.SQLITE_LIMIT_SQL_LENGTH: maxStatement,
		sqlite3.SQLITE_LIMIT_COLUMN: maxColumns, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: maxPattern,
		sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
	} {
		sqlite3.Xsqlite3_limit(c.tls, c.db, id, int32(most))
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
	writes := "ON"
	if o.Write {
		writes = "OFF"
	}
	if err := c.run(fmt.Sprintf("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA cache_size = -2000; PRAGMA foreign_keys = ON; PRAGMA query_only = %s", writes)); err != nil {
		return err
	}
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, steps, pointer(look), c.flag)
	return c.failed(sqlite3.Xsqlite3_set_authorizer(c.tls, c.db, authorizerOf(o.Write), 0))
}

func (c *Conn) configure(option, on int32) error {
	arguments := c.tls.Alloc(2 * word)
	defer c.tls.Free(2 * word)
	return c.failed(sqlite3.Xsqlite3_db_config(c.tls, c.db, option, libc.VaList(arguments, on, uintptr(0))))
}

// pointer returns what C calls a function by.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

// look ends a statement whose connection is stopped, or when there is no memory
// left.
func look(tls *libc.TLS, flag uintptr) int32 {
	if libc.AtomicLoadPInt32(flag) == running && sqlite3.Xsqlite3_memory_used(tls) > maxMemory {
		libc.AtomicStorePInt32(flag, starved)
	}
	return libc.AtomicLoadPInt32(flag)
}

func authorizerOf(write bool) uintptr {
	if write {
		return pointer(authorizeWriting)
	}
	return pointer(authorizeReading)
}

func authorizeReading(_ *libc.TLS, _ uintptr, action int32, first, second, _, _ uintptr) int32 {
	return authorize(action, first, second, false)
}

func authorizeWriting(_ *libc.TLS, _ uintptr, action int32, first, second, _, _ uintptr) int32 {
	return authorize(action, first, second, true)
}

// authorize allows what reads rows and, where it may, what changes them.
func authorize(action int32, first, second uintptr, write bool) int32 {
	allowed := false
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE:
		allowed = true
	case sqlite3.SQLITE_FUNCTION:
		allowed = !slices.Contains(barredFunctions(), libc.GoString(second))
	case sqlite3.SQLITE_PRAGMA:
		allowed = slices.Contains(describing(), libc.GoString(first))
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		allowed = write
	}
	if allowed {
		return sqlite3.SQLITE_OK
	}
	return sqlite3.SQLITE_DENY
}

// barredFunctions reach beyond the file.
func barredFunctions() []string { return []string{"load_extension", "fts3_tokenizer"} }

// describing are the pragmas that tell what tables are like, which functions such
// as pragma_table_info ask.
func describing() []string {
	return []string{"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "collation_list"}
}
