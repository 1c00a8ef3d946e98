// Package extension defines the extension points of the engine. The packages below extensions/
// implement them, so that a program links a feature, with its libraries, only if it imports its
// package.
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

// Extension is the value that a package below extensions/ returns. It also implements one of the
// other interfaces of this package.
type Extension interface {
	// Name returns the package of the extension, such as "extensions/sqlite".
	Name() string
}

// Telemetry opens the telemetry of a server.
type Telemetry interface {
	Extension
	OpenTelemetry(o observe.Options) (observe.Telemetry, error)
}

// CodeMode returns the items of a codeact block. Programs run in x; if x is nil, they are rejected.
// trial and t are passed to [scripting.Source].
type CodeMode interface {
	Extension
	CodeItems(block *definition.Codeact, x scripting.Executor, trial func(scripting.Source) error, t scripting.Transpiler) []*catalog.Item
}

// Federation creates the connections to upstream servers.
type Federation interface {
	Extension
	Federate(federation.Options) federation.Federation
}

// TypeScript compiles scripts that are TypeScript or that import files.
type TypeScript interface {
	Extension
	Transpiler() scripting.Transpiler
}

// SQLite stores the state of a server in a SQLite file, and runs statements on SQLite files.
type SQLite interface {
	Extension
	// OpenState is a [state.Opener].
	OpenState(path string, o state.Options, patience time.Duration) (state.Store, error)
	// SQLiteDriver returns a driver for one server. The server closes it.
	SQLiteDriver() sqldb.Driver
}

// OIDC fetches the metadata and keys of identity providers.
type OIDC interface {
	Extension
	idp.Protocol
}

// PostgreSQL stores the state of servers in a PostgreSQL database, and runs statements in PostgreSQL.
type PostgreSQL interface {
	Extension
	// OpenDatabase opens the state store in a database. While the database cannot be reached, it tries
	// again for patience.
	OpenDatabase(d state.Database, o state.Options, patience time.Duration) (state.Store, error)
	// PostgreSQLDriver returns a driver for one server. The server closes it.
	PostgreSQLDriver() sqldb.Driver
}

// Set has the extensions of an engine; a missing extension is nil.
type Set struct {
	CodeMode   CodeMode
	OIDC       OIDC
	PostgreSQL PostgreSQL
	SQLite     SQLite
	Telemetry  Telemetry
	Federation Federation
	TypeScript TypeScript
}

// Drivers returns the drivers for sql grants by kind, and for each missing driver the package to
// import.
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

// Of returns the set of the extensions in engine.Options.
func Of[E Extension](extensions []E) (Set, error) {
	var set Set
	for i, e := range extensions {
		if err := set.Add(e); err != nil {
			return Set{}, fmt.Errorf("Options.Extensions[%d] %w", i, err)
		}
	}
	return set, nil
}

// Add adds an extension to the set. It returns an error for a value that is not from a package of
// mcpd, and for a duplicate.
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
		return fmt.Errorf("%q is not an extension of mcpd", e.Name())
	}
}

// add sets the field of an extension.
func add[E interface {
	comparable
	Extension
}](field *E, e E) error {
	var none E
	if *field != none {
		return fmt.Errorf("%q is listed twice", e.Name())
	}
	*field = e
	return nil
}
