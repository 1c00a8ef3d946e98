// Package postgres stores the state of engines in a PostgreSQL database, which several servers may
// share. It also runs the statements of sql grants with the driver "postgres". A program that imports
// the package links pgx.
//
//	engine.Options{
//		Name: "shop", Extensions: []engine.Extension{postgres.New()},
//		StateURL: "postgres://mcpd:secret@db.internal:5432/mcpd?sslmode=verify-full",
//	}
//
// A tool file grants a database and names the statements that its script may run:
//
//	allow {
//	  sql "shop" {
//	    driver = "postgres"
//	    dsn    = "postgres://mcpd:${secret.shop_password}@db.internal:5432/shop?sslmode=verify-full"
//	    statement "orders" { query = "SELECT number, cents FROM orders WHERE customer = :customer" }
//	  }
//	}
package postgres

import (
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/state"
	database "github.com/mcpd/mcpd/internal/base/state/postgres"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/host/sqldb/postgres"
)

// New returns the extension.
func New() engine.Extension { return extension{} }

type extension struct{}

// Name returns the package name.
func (extension) Name() string { return "extensions/postgres" }

// OpenDatabase opens the state store in a database.
func (extension) OpenDatabase(d state.Database, o state.Options, patience time.Duration) (state.Store, error) {
	return database.Open(d, o, patience)
}

// PostgreSQLDriver returns the driver.
func (extension) PostgreSQLDriver() sqldb.Driver { return postgres.Driver{} }
