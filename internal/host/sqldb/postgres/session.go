// Package postgres runs the statements of sql grants in PostgreSQL, by transactions that only
// read where the grant lets nothing be changed.
package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// grace is how long PostgreSQL has to end a statement before its connection is
// closed.
const grace = time.Second

type session struct {
	*pgconn.PgConn
	write bool
	spent bool // it cannot be used again
}

// Driver connects to PostgreSQL.
type Driver struct{}

func (Driver) Close() error { return nil }

func (Driver) Connect(ctx context.Context, g grant.SQL, resolve Resolver) (sqldb.Conn, error) {
	config, err := Configure(ctx, g, resolve)
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &session{PgConn: conn, write: g.Write}, nil
}

// harden sets what no dsn sets: a statement that ends with its call is ended at
// the server, and no message takes more memory than an answer may.
func harden(config *pgconn.Config, write bool) {
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(2 * sqldb.MaxAnswer)
		return f
	}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: grace}
	}
	for name, value := range map[string]string{
		"client_encoding": "UTF8", "standard_conforming_strings": "on", "bytea_output": "hex", "datestyle": "ISO",
	} {
		config.RuntimeParams[name] = value
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "mcpd"
	}
	if !write {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
}

func (s *session) Sound() bool { return !s.spent && !s.IsClosed() && s.TxStatus() == 'I' }

func (s *session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// What is closed because it failed says so again.
	_ = s.PgConn.Close(ctx)
}

// Run runs the statement of a request in a transaction of its own, and forgets
// what it leaves in the session.
func (s *session) Run(ctx context.Context, r *sqldb.Request, a *sqldb.Answer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.spent = true
	begin := "BEGIN READ ONLY"
	if s.write {
		begin = "BEGIN READ WRITE"
	}
	// The server ends the statement, too, when nobody is left to ask for that.
	begin += fmt.Sprintf("; SET LOCAL statement_timeout = %d", max(1, (sqldb.Deadline(ctx)+grace).Milliseconds()))
	if err := s.do(ctx, begin); err != nil {
		return err
	}
	if err := s.ask(ctx, cancel, r, a); err != nil {
		if !s.IsClosed() && s.do(ctx, "ROLLBACK") == nil && s.do(ctx, "DISCARD ALL") == nil {
			s.spent = false
		}
		return err
	}
	if err := s.do(ctx, "COMMIT"); err != nil {
		return err
	}
	if s.do(ctx, "DISCARD ALL") == nil {
		s.spent = false
	}
	return nil
}

func (s *session) do(ctx context.Context, text string) error {
	_, err := s.Exec(ctx, text).ReadAll()
	return err
}

// ask sends the statement with its values, as one that can be no second, and reads
// the rows. When there are too many it calls cancel, which ends the statement.
func (s *session) ask(ctx context.Context, cancel func(), r *sqldb.Request, a *sqldb.Answer) error {
	rows := s.ExecParams(ctx, r.Statement.Positional(), texts(r.Values), nil, nil, nil)
	err := s.read(rows, r, a)
	if err != nil {
		cancel()
	}
	tag, closed := rows.Close()
	if err != nil {
		return err
	}
	if !tag.Select() {
		a.Changes = tag.RowsAffected()
	}
	return closed
}

func (s *session) read(rows *pgconn.ResultReader, r *sqldb.Request, a *sqldb.Answer) error {
	for began := false; rows.NextRow() || !began; began = true {
		if r.Method != "query" {
			continue
		}
		fields := rows.FieldDescriptions()
		if !began {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.Name
			}
			if err := a.Begin(names); err != nil {
				return err
			}
		}
		values := rows.Values()
		if len(values) != len(fields) || len(fields) == 0 {
			continue
		}
		size, row := 0, make([]any, len(values))
		for i, v := range values {
			size += len(v)
			row[i] = plain(fields[i].DataTypeOID, v)
		}
		if err := a.Room(size); err != nil {
			return err
		}
		a.Add(row)
	}
	return nil
}

func texts(values []any) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case string:
			out[i] = []byte(v)
		case []byte:
			out[i] = []byte(`\x` + hex.EncodeToString(v))
		case float64:
			out[i] = strconv.AppendFloat(nil, v, 'g', -1, 64)
		default:
			out[i] = fmt.Append(nil, v)
		}
	}
	return out
}

// The types of PostgreSQL that are no text to scripts.
const (
	oidBool   = 16
	oidBytes  = 17
	oidInt8   = 20
	oidInt2   = 21
	oidInt4   = 23
	oidOID    = 26
	oidFloat4 = 700
	oidFloat8 = 701
)

func plain(oid uint32, text []byte) any {
	if text == nil {
		return nil
	}
	switch oid {
	case oidBool:
		return string(text) == "t"
	case oidInt2, oidInt4, oidInt8, oidOID:
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n
		}
	case oidFloat4, oidFloat8:
		if f, err := strconv.ParseFloat(string(text), 64); err == nil {
			return f
		}
	case oidBytes:
		if b, err := hex.DecodeString(string(text[min(2, len(text)):])); err == nil {
			return b
		}
	}
	return string(text)
}

// Explain returns what a script may know of an error of PostgreSQL.
func (Driver) Explain(err error) (code, text string) {
	var large *pgproto3.ExceededMaxBodyLenErr
	var failure *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &large):
		return scripting.TooLarge, "a row takes more than 8 MiB"
	case errors.As(err, &connecting):
		return scripting.Unavailable, "the database cannot be reached, or refuses the server"
	case !errors.As(err, &failure):
		return "", ""
	}
	if strings.HasPrefix(failure.Code, "42") && failure.Code != "42501" {
		return scripting.Invalid, sqldb.Rejection("PostgreSQL", failure.Message)
	}
	for _, known := range []struct{ prefixes, code, told string }{
		{"57014", scripting.TimedOut, "the database was not done in time"},
		{"25006 42501", scripting.Denied, "the statement does what the grant, or the role of the server, does not allow"},
		{"23", scripting.Invalid, "a constraint of the database refuses the row"},
		{"21 22", scripting.Invalid, "PostgreSQL cannot run the statement with these values"},
		{"53 54", scripting.TooLarge, "the statement takes more than the database has"},
		{"40 55P03", scripting.Unavailable, "the statement met another one that works on the same rows; try again"},
	} {
		for prefix := range strings.FieldsSeq(known.prefixes) {
			if strings.HasPrefix(failure.Code, prefix) {
				return known.code, known.told
			}
		}
	}
	return "", ""
}
