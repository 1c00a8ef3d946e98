package sqldb

import (
	"regexp"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
)

// Database is a compiled grant. It is immutable and safe for concurrent use.
type Database struct {
	grant.SQL
	// key is the hash of the grant, which identifies its connections.
	key key
	// globs are the compiled patterns of the grant; invalid ones are omitted.
	globs []*regexp.Regexp
	// statements are the statements of the grant by name; nil if invalid.
	statements map[string]*sqltext.Statement
}

// Compile compiles a grant. Running an invalid statement is an error.
func Compile(g grant.SQL) Database {
	d := Database{SQL: g, key: g.Hash(), statements: make(map[string]*sqltext.Statement, len(g.Statements))}
	for _, pattern := range g.Glob {
		if glob := compileGlob(pattern); glob != nil {
			d.globs = append(d.globs, glob)
		}
	}
	dialect := sqltext.SQLite
	if g.Driver == grant.PostgreSQL {
		dialect = sqltext.PostgreSQL
	}
	for _, s := range g.Statements {
		if _, twice := d.statements[s.Name]; !twice {
			d.statements[s.Name], _ = sqltext.Parse(s.Query, dialect)
		}
	}
	return d
}

// WithSecrets returns the database with secret names replaced by keys (see
// [grant.SQL.WithSecrets]).
func (d Database) WithSecrets(keys map[string]string) Database {
	changed := false
	d.DSN.EachSecret(func(name string) { changed = changed || keys[name] != "" })
	if changed {
		d.SQL = d.SQL.WithSecrets(keys)
		d.key = d.SQL.Hash()
	}
	return d
}

// compileGlob compiles a pattern for paths below a root: within a name * matches any characters
// and ? one, and ** matches any directories. It returns nil if the pattern is not text.
func compileGlob(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "**" && last:
			b.WriteString(`.+`)
		case part == "**":
			b.WriteString(`(?:[^/]+/)*`)
		default:
			b.WriteString(strings.NewReplacer(`\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(part)))
			if !last {
				b.WriteString("/")
			}
		}
	}
	glob, _ := regexp.Compile(b.String() + `\z`)
	return glob
}
