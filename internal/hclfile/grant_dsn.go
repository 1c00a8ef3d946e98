package hclfile

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
)

// dsnOptions are the options that the dsn of PostgreSQL may hold.
var dsnOptions = []string{"sslmode", "application_name", "connect_timeout", "search_path"}

// secretMark stands for a secret while a dsn is read.
const secretMark = "secret-0b5f"

// postgresDSN decodes the dsn of PostgreSQL: a secret, or an address in which
// secrets are the user and the password and nothing else, so that the file shows
// where they go.
func (d *decoder) postgresDSN(attr *hclsyntax.Attribute, g *grant.SQL, ranges map[string]diag.Range) {
	where := d.f.rng(attr.Expr.Range())
	d.eval.private = true
	parts, ok := d.secretText(attr.Expr)
	d.eval.private = false
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
			d.fail("misplaced-secret", where, "a dsn holds no base64", "write ${secret.NAME} for the password; it is escaped as it has to be")
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
	const form = "write dsn = \"postgres://user:${secret.NAME}@host:5432/database\", or dsn = secret.NAME with all of it"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "" || u.User == nil || u.User.Username() == "" || len(u.Path) < 2 {
		return "", "this is not the dsn of a PostgreSQL database", form
	}
	password, has := u.User.Password()
	switch query, err := url.ParseQuery(u.RawQuery); {
	case has && password != secretMark:
		return "", "a password stands in the file", "declare a secret in mcpd.hcl, and write ${secret.NAME} in its place"
	case strings.Contains(u.Host+u.Path+u.RawQuery+u.Fragment, secretMark):
		return "", "a secret says where the database is, and something else is written out", form
	case err != nil || u.Fragment != "":
		return "", "this is not the dsn of a PostgreSQL database", form
	default:
		for name := range query {
			if !slices.Contains(dsnOptions, name) {
				return "", "the dsn has an option that a grant cannot have", "keep only " + strings.Join(dsnOptions, ", ")
			}
		}
	}
	address = strings.ToLower(u.Host)
	if u.Port() == "" {
		address += ":5432"
	}
	if problem, _ := checkHost(address); problem != "" {
		return "", "this is not the host of a database", form
	}
	name, _, _ := cutPort(address)
	if addr, _ := netip.ParseAddr(strings.Trim(name, "[]")); name != "localhost" && !addr.IsLoopback() && u.Query().Get("sslmode") == "" {
		return "", "the dsn does not say how the connection is protected", "add ?sslmode=verify-full, or the best that the database can do"
	}
	return address, "", ""
}
