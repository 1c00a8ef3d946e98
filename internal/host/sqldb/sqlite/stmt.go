package sqlite

import (
	"errors"
	"strings"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

type Stmt struct {
	conn *Conn
	p    uintptr
}

// ErrNotSingleStatement reports a text that is not exactly one statement.
var ErrNotSingleStatement = errors.New("the text is not a single statement")

// Prepare compiles the single statement in a text.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	if strings.Contains(text, "\x00") {
		return nil, ErrNotSingleStatement
	}
	source, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, source)
	out := c.tls.Alloc(2 * wordSize)
	defer c.tls.Free(2 * wordSize)
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, source, int32(len(text)+1), 0, out, out+wordSize)
	if err := c.errorOf(rc); err != nil {
		return nil, err
	}
	s := &Stmt{conn: c, p: libc.AtomicLoadPUintptr(out)}
	if rest := libc.AtomicLoadPUintptr(out + wordSize); s.p == 0 || strings.TrimSpace(text[rest-source:]) != "" {
		s.Close()
		return nil, ErrNotSingleStatement
	}
	return s, nil
}

// Parameters returns the parameters as written, such as ":name".
func (s *Stmt) Parameters() []string {
	names := make([]string, sqlite3.Xsqlite3_bind_parameter_count(s.conn.tls, s.p))
	for i := range names {
		if p := sqlite3.Xsqlite3_bind_parameter_name(s.conn.tls, s.p, int32(i+1)); p != 0 {
			names[i] = libc.GoString(p)
		}
	}
	return names
}

func (s *Stmt) ReadsOnly() bool { return sqlite3.Xsqlite3_stmt_readonly(s.conn.tls, s.p) != 0 }

func (s *Stmt) Columns() []string {
	names := make([]string, sqlite3.Xsqlite3_column_count(s.conn.tls, s.p))
	for i := range names {
		names[i] = libc.GoString(sqlite3.Xsqlite3_column_name(s.conn.tls, s.p, int32(i)))
	}
	return names
}

// Bind binds the parameter at an index: nil, an int64, a float64, a string or bytes.
func (s *Stmt) Bind(index int, v any) error {
	i := int32(index + 1)
	switch v := v.(type) {
	case int64:
		return s.conn.errorOf(sqlite3.Xsqlite3_bind_int64(s.conn.tls, s.p, i, v))
	case float64:
		return s.conn.errorOf(sqlite3.Xsqlite3_bind_double(s.conn.tls, s.p, i, v))
	case string:
		return s.bindCopy(v, func(p uintptr) int32 {
			return sqlite3.Xsqlite3_bind_text(s.conn.tls, s.p, i, p, int32(len(v)), sqlite3.SQLITE_TRANSIENT)
		})
	case []byte:
		return s.bindCopy(string(v), func(p uintptr) int32 {
			return sqlite3.Xsqlite3_bind_blob(s.conn.tls, s.p, i, p, int32(len(v)), sqlite3.SQLITE_TRANSIENT)
		})
	}
	return s.conn.errorOf(sqlite3.Xsqlite3_bind_null(s.conn.tls, s.p, i))
}

func (s *Stmt) bindCopy(v string, bind func(p uintptr) int32) error {
	p, err := libc.CString(v)
	if err != nil {
		return err
	}
	defer libc.Xfree(s.conn.tls, p)
	return s.conn.errorOf(bind(p))
}

// Step advances to the next row, and reports whether there is one.
func (s *Stmt) Step() (bool, error) {
	rc := sqlite3.Xsqlite3_step(s.conn.tls, s.p)
	return rc == sqlite3.SQLITE_ROW, s.conn.errorOf(rc)
}

func (s *Stmt) Size(column int) int {
	switch sqlite3.Xsqlite3_column_type(s.conn.tls, s.p, int32(column)) {
	case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
		return int(sqlite3.Xsqlite3_column_bytes(s.conn.tls, s.p, int32(column)))
	}
	return wordSize
}

// Value returns the value of a column: nil, an int64, a float64, a string or bytes.
func (s *Stmt) Value(column int) any {
	tls, i := s.conn.tls, int32(column)
	switch sqlite3.Xsqlite3_column_type(tls, s.p, i) {
	case sqlite3.SQLITE_INTEGER:
		return int64(sqlite3.Xsqlite3_column_int64(tls, s.p, i))
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(tls, s.p, i)
	case sqlite3.SQLITE_TEXT:
		p := sqlite3.Xsqlite3_column_text(tls, s.p, i)
		return string(libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(tls, s.p, i))))
	case sqlite3.SQLITE_BLOB:
		p := sqlite3.Xsqlite3_column_blob(tls, s.p, i)
		return append([]byte{}, libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(tls, s.p, i)))...)
	}
	return nil
}

func (c *Conn) Changes() int64 { return int64(sqlite3.Xsqlite3_changes64(c.tls, c.db)) }

func (s *Stmt) Close() {
	if s.p != 0 {
		sqlite3.Xsqlite3_finalize(s.conn.tls, s.p)
		s.p = 0
	}
}
