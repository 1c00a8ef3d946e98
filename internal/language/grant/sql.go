package grant

import "crypto/sha256"

// The drivers of an [SQL].
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// SQL lets a script run the named statements on a database, as the object
// sql.NAME.
type SQL struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// DSN is where the database of PostgreSQL is. Its secrets are resolved when a
	// connection is made.
	DSN Value `json:"dsn,omitzero"`
	// Address is the host:port of DSN where the file says it, "" when a secret does.
	Address string `json:"address,omitempty"`
	// Path is of SQLite: the file, or the folder of the files that calls choose.
	// It is absolute, or relative when the granting file is not on the disk.
	Path string `json:"path,omitempty"`
	// Relative says that the file names Path from where it stands itself.
	Relative bool `json:"-"`
	// Real is the absolute path without links, as it was when the grant was
	// judged. Empty means that there is nothing.
	Real string `json:"real,omitempty"`
	// Chosen says that each call chooses a file below Path, which one of Glob matches.
	Chosen bool     `json:"chosen,omitempty"`
	Glob   []string `json:"glob,omitempty"`
	// Write lets statements change rows, too.
	Write bool `json:"write,omitempty"`
	// MaxRows is how many rows a statement may answer with.
	MaxRows    int         `json:"max_rows"`
	Statements []Statement `json:"statements"`
}

// Statement is what a script runs by its name.
type Statement struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}

// DefaultMaxRows is MaxRows of an [SQL] that does not say.
const DefaultMaxRows = 1000

// Hash returns a hash of everything that the value says; the values of secrets
// are not part of it.
func (g SQL) Hash() [sha256.Size]byte { return hash(g) }

// WithSecrets returns the grant with the secrets that it names replaced by those
// that keys names for them.
func (g SQL) WithSecrets(keys map[string]string) SQL {
	g.DSN, _ = g.DSN.withSecrets(keys)
	return g
}
