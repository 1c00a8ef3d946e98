package configcheck_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// databases is a tool file that grants a SQLite file or files.
func databases(where string) string {
	return "tool \"t\" {\n  allow {\n    sql \"d\" {\n      driver = \"sqlite\"\n" + where + "\n      statement \"s\" { query = \"SELECT 1\" }\n    }\n  }\n  run = \"return sql.d;\"\n}\n"
}

func TestADatabaseFileThatGivesTooMuchIsRefused(t *testing.T) {
	places := machine(nil)
	find := places.Find
	places.Find = func(path string) (string, error) {
		if strings.HasSuffix(path, ".db") && !strings.Contains(path, "missing") {
			return path, errors.New("it is not a folder")
		}
		if strings.Contains(path, "missing") {
			return path, fs.ErrNotExist
		}
		return find(path)
	}
	own := config(t, "ceiling {\n  sql_roots   = [\"/srv/data\", \"/etc/app.db\"]\n  sql_drivers = [\"sqlite\"]\n  sql_hosts   = [\"*.db.internal:5432\"]\n}\nsecret \"s\" { file = \"/srv/keys/token.db\" }\n")
	none := config(t, "")
	for _, c := range []struct {
		config      *hclfile.Config
		where, want string
	}{
		{none, `dsn = "/etc/shadow.db"`, `bad-grant: tool "t" gives a script the system's folder /etc`},
		{none, `dsn = "/var/lib/mcpd/state.db"`, `bad-grant: tool "t" gives a script a file of mcpd's state`},
		{none, `dsn = "/home/ann/.config/x.db"`, `bad-grant: tool "t" gives a script a hidden folder of the home folder`},
		{none, "root = \"/\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives a script all files of the machine`},
		{none, "root = \"/var/lib/mcpd\"\nglob = [\"*.db\"]", `bad-grant: tool "t" gives a script the folder of mcpd's state`},
		{none, `dsn = "/data/shop.db"`, ""},
		{none, `dsn = "/data/missing.db"`, "missing-root: the file of the database does not exist yet"},
		{none, `dsn = "/data"`, "missing-root: the dsn is a folder"},
		{own, `dsn = "/srv/data/shop.db"`, ""},
		{own, `dsn = "/etc/app.db"`, ""},
		{own, `dsn = "/srv/keys/token.db"`, `bad-grant: tool "t" gives a script the folder of a file that holds a secret`},
		{own, `dsn = "/data/shop.db"`, `over-ceiling: tool "t" has a root that the operator's ceiling does not allow`},
		{own, "root = \"/srv/data-evil\"\nglob = [\"*.db\"]", `over-ceiling: tool "t" has a root that the operator's ceiling does not allow`},
	} {
		got := ""
		for _, p := range configcheck.CheckPlaces(c.config, []*hclfile.Definitions{tools(t, "a.hcl", databases(c.where))}, places) {
			got += p.Code + ": " + p.Summary
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.where, got, c.want)
		}
	}
	file := strings.ReplaceAll(databases(`dsn = "postgres://app@evil.example/shop?sslmode=require"`), `"sqlite"`, `"postgres"`)
	var codes []string
	for _, p := range configcheck.Check(own, []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{}) {
		codes = append(codes, p.Code+" "+p.Range.String())
	}
	if got := strings.Join(codes, ", "); got != "over-ceiling a.hcl:4:16, over-ceiling a.hcl:5:7" {
		t.Errorf("the ceiling says %s", got)
	}
}
