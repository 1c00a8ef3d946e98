// Package postgres runs the statements of sql grants in PostgreSQL, in read-only transactions
// unless the grant allows writes.
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

// cancelGrace is how long PostgreSQL has to cancel a statement before its connection is closed.
const cancelGrace = time.Second

type session struct {
	*pgconn.PgConn
	write  bool
	broken bool // it cannot be reused
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

// applySafetySettings overrides settings of the DSN: a statement is cancelled at the server
// when its call ends, and no message takes more memory than a result may.
func applySafetySettings(config *pgconn.Config, write bool) {
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(2 * sqldb.MaxRowsSize)
		return f
	}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelGrace}
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

func (s *session) Healthy() bool { return !s.broken && !s.IsClosed() && s.TxStatus() == 'I' }

func (s *session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	// A connection closed after a failure returns the failure again.
	_ = s.PgConn.Close(ctx)
}

// Run runs a query in its own transaction, and resets the session.
func (s *session) Run(ctx context.Context, r *sqldb.Query, a *sqldb.Rows) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.broken = true
	begin := "BEGIN READ ONLY"
	if s.write {
		begin = "BEGIN READ WRITE"
	}
	// The server also ends the statement if this process is gone.
	begin += fmt.Sprintf("; SET LOCAL statement_timeout = %d", max(1, (sqldb.Deadline(ctx)+cancelGrace).Milliseconds()))
	if err := s.do(ctx, begin); err != nil {
		return err
	}
	if err := s.query(ctx, cancel, r, a); err != nil {
		if !s.IsClosed() && s.do(ctx, "ROLLBACK") == nil && s.do(ctx, "DISCARD ALL") == nil {
			s.broken = false
		}
		return err
	}
	if err := s.do(ctx, "COMMIT"); err != nil {
		return err
	}
	if s.do(ctx, "DISCARD ALL") == nil {
		s.broken = false
	}
	return nil
}

func (s *session) do(ctx context.Context, text string) error {
	_, err := s.Exec(ctx, text).ReadAll()
	return err
}

// query sends the statement with its values in the extended protocol, which allows only one,
// and reads the rows. If there are too many it calls cancel, which cancels the statement.
func (s *session) query(ctx context.Context, cancel func(), r *sqldb.Query, a *sqldb.Rows) error {
	rows := s.ExecParams(ctx, r.Statement.Positional(), encodeParams(r.Values), nil, nil, nil)
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

func (s *session) read(rows *pgconn.ResultReader, r *sqldb.Query, a *sqldb.Rows) error {
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
			if err := a.SetColumns(names); err != nil {
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
			row[i] = decodeText(fields[i].DataTypeOID, v)
		}
		if err := a.CheckSize(size); err != nil {
			return err
		}
		a.Add(row)
	}
	return nil
}

func encodeParams(values []any) [][]byte {
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

// The types of PostgreSQL that are not strings in scripts.
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

func decodeText(oid uint32, text []byte) any {
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

// Explain returns the code and message of a PostgreSQL error for scripts.
func (Driver) Explain(err error) (code, text string) {
	var large *pgproto3.ExceededMaxBodyLenErr
	var failure *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &large):
		return scripting.TooLarge, "a row has more than 8 MiB"
	case errors.As(err, &connecting):
		return scripting.Unavailable, "the database cannot be reached, or rejects the connection"
	case !errors.As(err, &failure):
		return "", ""
	}
	if strings.HasPrefix(failure.Code, "42") && failure.Code != "42501" {
		return scripting.Invalid, sqldb.Rejection("PostgreSQL", failure.Message)
	}
	for _, known := range []struct{ prefixes, code, told string }{
		{"57014", scripting.TimedOut, "the database did not respond in time"},
		{"25006 42501", scripting.Denied, "the grant, or the role of the server, does not allow the statement"},
		{"23", scripting.Invalid, "a constraint of the database rejects the row"},
		{"21 22", scripting.Invalid, "PostgreSQL cannot run the statement with these values"},
		{"53 54", scripting.TooLarge, "the statement exceeds the resources of the database"},
		{"40 55P03", scripting.Unavailable, "the statement conflicts with another one on the same rows; try again"},
	} {
		for prefix := range strings.FieldsSeq(known.prefixes) {
			if strings.HasPrefix(failure.Code, prefix) {
				return known.code, known.told
			}
		}
	}
	return "", ""
}
