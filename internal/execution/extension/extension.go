// Package extension says what an engine can be extended with. The packages below extensions/
// implement its interfaces; engine and the packages below it use them, so that a program
// links a part, with the libraries that it needs, only if it imports its package.
package extension

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/auth/idp"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Extension is what the packages below extensions/ return: a value that also has one of the
// interfaces of this package.
type Extension interface {
	// Name returns the package that the extension comes from, as in "extensions/sqlite".
	Name() string
}

// Telemetry opens the telemetry of a server.
type Telemetry interface {
	Extension
	OpenTelemetry(o observe.Options) (observe.Telemetry, error)
}

// CodeMode returns what a codeact block offers: programs run in x, and none does if x is
// nil. trial and t are those of [scripting.Source].
type CodeMode interface {
	Extension
	CodeItems(block *definition.Codeact, x scripting.Executor, trial func(scripting.Source) error, t scripting.Transpiler) []*catalog.Item
}

// Federation makes the connections to upstream servers.
type Federation interface {
	Extension
	Federate(federation.Options) federation.Federation
}

// TypeScript compiles bodies that are TypeScript or import files.
type TypeScript interface {
	Extension
	Transpiler() scripting.Transpiler
}

// SQLite keeps the state of a server in a SQLite file, and runs statements on SQLite files.
type SQLite interface {
	Extension
	// OpenState is a [state.Opener].
	OpenState(path string, o state.Options, patience time.Duration) (state.Store, error)
	// SQLiteDriver returns a driver for one server, which closes it.
	SQLiteDriver() sqldb.Driver
}

// OIDC reads what identity providers publish.
type OIDC interface {
	Extension
	idp.Protocol
}

// PostgreSQL runs statements in PostgreSQL.
type PostgreSQL interface {
	Extension
	// PostgreSQLDriver returns a driver for one server, which closes it.
	PostgreSQLDriver() sqldb.Driver
}

// Set holds the parts that a program has given to its engine; a part that it has not given
// is nil.
type Set struct {
	CodeMode   CodeMode
	OIDC       OIDC
	PostgreSQL PostgreSQL
	SQLite     SQLite
	Telemetry  Telemetry
	Federation Federation
	TypeScript TypeScript
}

// Drivers returns the drivers for the sql grants of one server, by their kinds, and for each
// kind without a driver the package to import.
func (s *Set) Drivers() (drivers map[string]sqldb.Driver, missing map[string]string) {
	drivers, missing = map[string]sqldb.Driver{}, map[string]string{}
	if s.SQLite != nil {
		drivers[grant.SQLite] = s.SQLite.SQLiteDriver()
	} else {
		missing[grant.SQLite] = "extensions/sqlite"
	}
	if s.PostgreSQL != nil {
		drivers[grant.PostgreSQL] = s.PostgreSQL.PostgreSQLDriver()
	} else {
		missing[grant.PostgreSQL] = "extensions/postgres"
	}
	return drivers, missing
}

// Of returns the set of the extensions in an engine's Options.
func Of[E Extension](extensions []E) (Set, error) {
	var set Set
	for i, e := range extensions {
		if err := set.Add(e); err != nil {
			return Set{}, fmt.Errorf("Options.Extensions[%d] %w", i, err)
		}
	}
	return set, nil
}

// Add puts an extension into the set. It returns an error for a value that no package of
// mcpd has made, and for a part that the set has.
func (s *Set) Add(e Extension) error {
	switch e := e.(type) {
	case nil:
		return errors.New("is nil")
	case CodeMode:
		return add(&s.CodeMode, e)
	case OIDC:
		return add(&s.OIDC, e)
	case PostgreSQL:
		return add(&s.PostgreSQL, e)
	case SQLite:
		return add(&s.SQLite, e)
	case Telemetry:
		return add(&s.Telemetry, e)
	case Federation:
		return add(&s.Federation, e)
	case TypeScript:
		return add(&s.TypeScript, e)
	default:
		return fmt.Errorf("%q is not of mcpd", e.Name())
	}
}

// add puts an extension into its field.
func add[E interface {
	comparable
	Extension
}](field *E, e E) error {
	var none E
	if *field != none {
		return fmt.Errorf("%q is there twice", e.Name())
	}
	*field = e
	return nil
}
