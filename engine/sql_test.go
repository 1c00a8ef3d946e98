package engine_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

const buying = `
tool "buy" {
  input "service" { type = string }
  allow {
    sql "shop" {
      driver = "sqlite"
      dsn    = "PATH"
      mode   = "rw"
      statement "add" { query = "INSERT INTO orders (what) VALUES (:what)" }
      statement "all" { query = "SELECT count(*) AS n FROM orders" }
    }
    ask { elicit = true }
  }
  run = <<JS
    const { changes } = await sql.shop.exec("add", { what: input.service });
    const [before] = await sql.shop.query("all");
    await elicit("first", { message: "Go on?", schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    await sql.shop.exec("add", { what: "the second" });
    const [after] = await sql.shop.query("all");
    return [changes, before.n, after.n];
  JS
}
`

// The second leg runs the script from the start.
func TestSQL_resume(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "shop.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE orders (what TEXT)"); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.ReplaceAll(buying, "PATH", filepath.ToSlash(path)), `"buy"`, `"deploy"`)
	s := server(t, engine.Options{Files: engine.Files{Tools: files("deploy.hcl", text)}, StatePath: filepath.Join(t.TempDir(), "state", "mcpd.db")})
	ask := mustAsk(t, s.Execute(t.Context(), deployCall("web", nil)))
	for range 2 {
		last := s.Execute(t.Context(), deployCall("web", respond(ask, `{"ok":true}`)))
		if want := `[1,1,2]`; last.Err != nil || string(last.Value) != want {
			t.Errorf("got %s, %v; want %s", last.Value, last.Err, want)
		}
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM orders").Scan(&n); err != nil || n != 2 {
		t.Errorf("there are %d orders, %v", n, err)
	}
}
