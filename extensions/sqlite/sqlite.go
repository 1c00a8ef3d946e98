// Package sqlite stores the state of an engine in a SQLite file. It also runs the statements of sql
// grants with the driver "sqlite". A program that imports the package links SQLite.
//
//	engine.Options{Extensions: []engine.Extension{sqlite.New()}, StatePath: "state/mcpd.db"}
package sqlite

import (
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/state"
	file "github.com/mcpd/mcpd/internal/base/state/sqlite"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	driver "github.com/mcpd/mcpd/internal/host/sqldb/sqlite"
)

// New returns the extension. Several engines may share it.
func New() engine.Extension { return extension{} }

type extension struct{}

// Name returns the package name.
func (extension) Name() string { return "extensions/sqlite" }

// OpenState opens the state store in a file.
func (extension) OpenState(path string, o state.Options, patience time.Duration) (state.Store, error) {
	return file.Open(path, o, patience)
}

// SQLiteDriver returns a driver. The engine closes it.
func (extension) SQLiteDriver() sqldb.Driver { return &driver.Driver{} }
