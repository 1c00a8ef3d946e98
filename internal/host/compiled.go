package host

import (
	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Compiled are grants of a body that are made ready when it is loaded, so that
// its calls read no pattern and no statement. They are shared by its calls, and
// not changed.
type Compiled struct {
	// Exec are the programs that the body may run.
	Exec []execs.Program
	// Databases are those that the body may ask.
	Databases []sqldb.Database
}

// Compile makes exec and sql grants ready.
func Compile(programs []grant.Exec, databases []grant.SQL) Compiled {
	var c Compiled
	for _, g := range programs {
		c.Exec = append(c.Exec, execs.Compile(g))
	}
	for _, g := range databases {
		c.Databases = append(c.Databases, sqldb.Compile(g))
	}
	return c
}
