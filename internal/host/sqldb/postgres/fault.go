package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/scripting"
)

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
