package postgres_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/scripting"
)

// The server connects to the database at the first call, not while loading.
func Example() {
	files := engine.Files{
		Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(`
secret "shop_password" {
  env = "SHOP_PASSWORD"
}
`), Mode: 0o644}},
		Tools: fstest.MapFS{"orders.hcl": {Data: []byte(`
tool "orders" {
  description = "Returns the orders of a customer."
  read_only   = true
  input "customer" { type = string }
  allow {
    sql "shop" {
      driver = "postgres"
      dsn    = "postgres://mcpd:${secret.shop_password}@db.internal:5432/shop?sslmode=verify-full"
      statement "orders" {
        query = "SELECT number, cents FROM orders WHERE customer = :customer"
      }
    }
  }
  run = "return await sql.shop.query('orders', { customer: input.customer })"
}
`), Mode: 0o644}},
		LookupEnv: func(string) (string, bool) { return "swordfish", true },
	}
	server, err := engine.New(engine.Options{
		Name: "shop", Files: files, Scripts: engine.Scripts{Executor: scripting.Inline()}, Extensions: []engine.Extension{postgres.New()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	if _, err := server.Load(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(*server.Snapshot().Tool("orders").Metadata().Description)
	// Output: Returns the orders of a customer.
}
