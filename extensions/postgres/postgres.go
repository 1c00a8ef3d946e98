// Package postgres runs the statements of sql grants with the driver "postgres", in PostgreSQL.
// A program that imports the package links pgx.
//
//	engine.Options{Extensions: []engine.Extension{postgres.New()}}
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
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/host/sqldb/postgres"
)

// New returns the extension.
func New() engine.Extension { return extension{} }

type extension struct{}

// Name returns the package name.
func (extension) Name() string { return "extensions/postgres" }

// PostgreSQLDriver returns the driver.
func (extension) PostgreSQLDriver() sqldb.Driver { return postgres.Driver{} }
