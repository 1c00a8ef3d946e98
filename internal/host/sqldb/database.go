package sqldb

import (
	"regexp"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
)

// Database is a grant that is ready for operations. It does not change, and is
// safe for concurrent use.
type Database struct {
	grant.SQL
	// key is the hash of the grant, by which its connections are known.
	key key
	// globs are the patterns of the grant, but for those that match nothing.
	globs []*regexp.Regexp
	// statements are those of the grant by name, nil for one that cannot be read.
	statements map[string]*sqltext.Statement
}

// Compile makes a grant ready. It takes what a file may say; a statement that
// cannot be read is refused when it is run.
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

// WithSecrets returns the database of the grant in which keys name the secrets
// (see [grant.SQL.WithSecrets]).
func (d Database) WithSecrets(keys map[string]string) Database {
	changed := false
	d.DSN.EachSecret(func(name string) { changed = changed || keys[name] != "" })
	if changed {
		d.SQL = d.SQL.WithSecrets(keys)
		d.key = d.SQL.Hash()
	}
	return d
}

// compileGlob returns the expression that matches what a pattern does among the
// paths below a root: in it * stands for a run of characters and ? for one within
// a name, and ** for any folders. It is nil for what is no text.
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
