package hclfile

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
)

// Maximums of a sql grant.
const (
	maxRows       = 100_000
	maxStatements = 100
	maxStatement  = 16 << 10
)

// sqlDrivers are the supported databases.
var sqlDrivers = []string{grant.SQLite, grant.PostgreSQL}

// sql decodes a sql block. It sets the ranges "sql.NAME.driver", "sql.NAME.path" and
// "sql.NAME.address" for the ceiling.
func (d *decoder) sql(b *hclsyntax.Block, ranges map[string]diag.Range) grant.SQL {
	r := rules["sql"]
	d.checkBody(b)
	literal := *r
	literal.args = slices.DeleteFunc(slices.Clone(r.args), func(a argument) bool { return a.name == "dsn" })
	body := d.requireLiteral(b.Body, &literal)
	g := grant.SQL{Name: b.Labels[0]}
	if g.Driver = d.enumAttr(body, "driver", sqlDrivers...); g.Driver != "" {
		ranges["sql."+g.Name+".driver"] = d.f.rng(body.Attributes["driver"].Expr.Range())
	}
	g.Write = d.enumAttr(body, "mode", "ro", "rw") == "rw"
	g.MaxRows = cmp.Or(d.intAttr(body, "max_rows", 1, maxRows), grant.DefaultMaxRows)
	d.database(b, body, &g, ranges)
	d.statements(b, r, &g)
	return g
}

// database decodes the location of the database: a dsn, or a root with a glob.
func (d *decoder) database(b *hclsyntax.Block, body *hclsyntax.Body, g *grant.SQL, ranges map[string]diag.Range) {
	dsn, root, glob := b.Body.Attributes["dsn"], b.Body.Attributes["root"], b.Body.Attributes["glob"]
	fail := func(attr *hclsyntax.Attribute, summary, detail string) {
		d.fail("contradiction", d.f.rng(attr.NameRange), summary, detail)
	}
	// A contradiction counts as both, so that it causes no further errors.
	if root != nil && (dsn != nil || g.Write) {
		g.PathFromCall, g.Write = true, true
	}
	switch {
	case dsn != nil && root != nil:
		fail(root, "the grant has both \"dsn\" and \"root\"", "keep dsn for one database, or root and glob for several files")
	case root != nil && g.Driver == grant.PostgreSQL:
		fail(root, "only SQLite has databases in files", "write the dsn of the database")
	case root != nil && g.Write:
		fail(root, "files of a root are read-only", "remove mode = \"rw\", or write the path of one file in dsn")
	case glob != nil && root == nil:
		fail(glob, "\"glob\" needs a root", "add root = \"…\", or remove glob")
	case root != nil:
		d.filesOfCalls(b, body, g, ranges)
	case dsn == nil && !d.hasSimilar(b.Body, rules["sql"], "dsn", "root"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the grant names no database", "write dsn = …, or root = … and glob = [...] for SQLite files")
	case dsn != nil && g.Driver == grant.SQLite:
		d.sqliteFile(dsn, g, ranges)
	case dsn != nil && g.Driver == grant.PostgreSQL:
		d.postgresDSN(dsn, g, ranges)
	}
}

func (d *decoder) filesOfCalls(b *hclsyntax.Block, body *hclsyntax.Body, g *grant.SQL, ranges map[string]diag.Range) {
	g.PathFromCall = true
	if written, ok := d.text(body, "root"); ok {
		where := d.f.rng(body.Attributes["root"].Expr.Range())
		g.Path, g.Relative = d.folderPath(written, where), !filepath.IsAbs(written)
		ranges["sql."+g.Name+".path"] = where
	}
	if g.Glob = d.globs(body, "glob"); b.Body.Attributes["glob"] == nil && !d.hasSimilar(b.Body, rules["sql"], "glob") {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the grant has a root but no glob", "write a pattern, such as glob = [\"**/*.db\"]")
	}
}

func (d *decoder) sqliteFile(attr *hclsyntax.Attribute, g *grant.SQL, ranges map[string]diag.Range) {
	where := d.f.rng(attr.Expr.Range())
	if computedPart(attr.Expr) != nil {
		d.fail("computed-grant", where, "the path of a SQLite file cannot be computed", "write the path literally, so that the file shows the grant")
		return
	}
	v, ok := d.attrValue(&hclsyntax.Body{Attributes: hclsyntax.Attributes{"dsn": attr}}, "dsn", stringKind)
	if !ok {
		return
	}
	written := v.AsString()
	if strings.HasPrefix(written, "file:") || strings.HasPrefix(written, ":") || strings.ContainsAny(written, "?#") {
		d.fail("bad-grant", where, "the dsn of SQLite must be only a path", "write a path such as \"data/shop.db\", and use mode for write access")
		return
	}
	g.Path, g.Relative = d.folderPath(written, where), !filepath.IsAbs(written)
	ranges["sql."+g.Name+".path"] = where
}

func (d *decoder) statements(b *hclsyntax.Block, r *rule, g *grant.SQL) {
	taken := declaredNames{}
	for _, inner := range blocks(b.Body, r) {
		d.checkBody(inner)
		d.declare(taken, inner)
		d.checkIdentifier("the statement", inner.Labels[0], inner.LabelRanges[0])
		attr := inner.Body.Attributes["query"]
		if attr == nil {
			continue
		}
		if text := d.code(attr, definition.SQL); text != nil {
			d.statement(text.Text, g)
			g.Statements = append(g.Statements, grant.Statement{Name: inner.Labels[0], Query: text.Text.Body()})
		}
	}
	switch n := len(b.Body.Blocks); {
	case n == 0:
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the grant has no statement", "write statement \"name\" { query = <<SQL … SQL }")
	case n > maxStatements:
		d.fail("bad-grant", d.f.rng(b.DefRange()), fmt.Sprintf("a sql grant has at most %d statements", maxStatements), "split it into several grants")
	}
}

// statement checks a statement as far as possible without its database.
func (d *decoder) statement(text diag.Text, g *grant.SQL) {
	dialect, reads, writes := sqltext.SQLite, []string{"SELECT", "WITH", "VALUES"}, []string{"INSERT", "UPDATE", "DELETE", "REPLACE"}
	if g.Driver == grant.PostgreSQL {
		dialect, writes = sqltext.PostgreSQL, []string{"INSERT", "UPDATE", "DELETE", "MERGE"}
	}
	s, err := sqltext.Parse(text.Body(), dialect)
	if mistake, ok := err.(*sqltext.Error); ok {
		d.fail("bad-statement", text.Range(mistake.Offset, mistake.Offset+1), mistake.Summary, mistake.Detail)
		return
	}
	at := strings.Index(strings.ToUpper(text.Body()), s.Verb)
	where := text.Range(max(at, 0), max(at, 0)+len(s.Verb))
	switch {
	case len(text.Body()) > maxStatement:
		d.fail("bad-statement", where, fmt.Sprintf("a statement has at most %d bytes", maxStatement), "make it shorter, or use a view")
	case slices.Contains(reads, s.Verb), g.Write && slices.Contains(writes, s.Verb):
	case slices.Contains(writes, s.Verb):
		d.fail("bad-statement", where, "this statement writes, but the grant is read-only", "add mode = \"rw\" to the grant")
	default:
		d.fail("bad-statement", where, "this kind of statement is not supported", "start it with "+strings.Join(append(reads, writes...), ", "))
	}
}

// dsnOptions are the allowed options in a dsn of PostgreSQL.
var dsnOptions = []string{"sslmode", "application_name", "connect_timeout", "search_path"}

// secretMark replaces a secret while a dsn is parsed.
const secretMark = "secret-0b5f"

// postgresDSN decodes the dsn of PostgreSQL: a secret, or an address. In an address, secrets
// may only be the user and the password, so that the file shows where they are sent.
func (d *decoder) postgresDSN(attr *hclsyntax.Attribute, g *grant.SQL, ranges map[string]diag.Range) {
	where := d.f.rng(attr.Expr.Range())
	parts, ok := d.privateText(attr.Expr)
	if !ok {
		return
	}
	ranges["sql."+g.Name+".address"] = where
	g.DSN = grant.Value{Parts: parts}
	if len(parts) == 1 && parts[0].Secret != "" {
		return
	}
	var text strings.Builder
	for _, p := range parts {
		switch {
		case p.Secret != "":
			text.WriteString(secretMark)
		case p.Base64 != nil:
			d.fail("misplaced-secret", where, "a dsn must not contain base64", "write ${secret.NAME} for the password; it is escaped automatically")
			return
		default:
			text.WriteString(p.Literal)
		}
	}
	var problem, detail string
	if g.Address, problem, detail = readDSN(text.String()); problem != "" {
		d.fail("bad-grant", where, problem, detail)
	}
}

// readDSN returns the host and port of a dsn, or what is wrong with it.
func readDSN(text string) (address, problem, detail string) {
	const form = "write dsn = \"postgres://user:${secret.NAME}@host:5432/database\", or dsn = secret.NAME for the whole dsn"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "" || u.User == nil || u.User.Username() == "" || len(u.Path) < 2 {
		return "", "this is not a valid dsn of PostgreSQL", form
	}
	password, has := u.User.Password()
	switch query, err := url.ParseQuery(u.RawQuery); {
	case has && password != secretMark:
		return "", "the file contains a password", "declare a secret in mcpd.hcl, and write ${secret.NAME} instead"
	case strings.Contains(u.Host+u.Path+u.RawQuery+u.Fragment, secretMark):
		return "", "a secret contains the address, but other parts are literal", form
	case err != nil || u.Fragment != "":
		return "", "this is not a valid dsn of PostgreSQL", form
	default:
		for name := range query {
			if !slices.Contains(dsnOptions, name) {
				return "", "the dsn has an unsupported option", "keep only " + strings.Join(dsnOptions, ", ")
			}
		}
	}
	address = strings.ToLower(u.Host)
	if u.Port() == "" {
		address += ":5432"
	}
	if problem, _ := checkHost(address); problem != "" {
		return "", "this is not a valid database host", form
	}
	name, _, _ := cutPort(address)
	if addr, _ := netip.ParseAddr(strings.Trim(name, "[]")); name != "localhost" && !addr.IsLoopback() && u.Query().Get("sslmode") == "" {
		return "", "the dsn has no sslmode", "add ?sslmode=verify-full, or the strictest mode of the database"
	}
	return address, "", ""
}
