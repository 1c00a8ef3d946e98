package extensions_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

// The program of an agent calls a tool twice and adds the results.
func Example_codemode() {
	files := engine.Files{
		Config: fstest.MapFS{"mcpd.hcl": {Data: []byte("codeact {\n  tools = [\"*\"]\n}\n")}},
		Tools: fstest.MapFS{"stock.hcl": {Data: []byte(`
tool "stock" {
  description = "Returns how many there are of an article."
  read_only   = true
  input "article" { type = string }
  run = "return input.article.length"
}
`)}},
	}
	server, err := engine.New(engine.Options{
		Name: "shop", Files: files, Scripts: engine.Scripts{Executor: scripting.Inline(), Programs: scripting.Inline()}, Extensions: []engine.Extension{codemode.New()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	result, err := server.Call(context.Background(), "run_code", map[string]string{
		"code": "const [lamp, chair] = [await tools.stock({ article: 'lamp' }), await tools.stock({ article: 'chair' })]; return lamp + chair",
	})
	fmt.Println(string(result.Value), err)
	// Output: {"result":9,"stdout":"","calls":[{"tool":"stock","outcome":"ok"},{"tool":"stock","outcome":"ok"}]} <nil>
}

func Example_federation() {
	files := fstest.MapFS{"add.hcl": {Data: []byte(`tool "add" { run = "return 1;" }`), Mode: 0o644}}
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: files}, Scripts: engine.Scripts{Executor: scripting.Inline()}, Extensions: []engine.Extension{federation.New()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close(context.Background())
	_, err = server.Load(context.Background())
	fmt.Println(err, len(server.Status().Upstreams))
	// Output: <nil> 0
}

// The server connects to the database at the first call, not while loading.
func Example_postgres() {
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

// The second server finds the value that the first one stored.
func Example_sqlite() {
	folder, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	tools := fstest.MapFS{"visit.hcl": {Data: []byte(`
tool "visit" {
  allow {
    kv "visits" {}
  }
  run = "return await kv.visits.incr('all')"
}
`), Mode: 0o644}}
	for range 2 {
		server, err := engine.New(engine.Options{
			Name:       "shop",
			Files:      engine.Files{Tools: tools},
			Scripts:    engine.Scripts{Executor: scripting.Inline()},
			StatePath:  filepath.Join(folder, "state.db"),
			Extensions: []engine.Extension{sqlite.New()},
		})
		if err != nil {
			log.Fatal(err)
		}
		result, err := server.Call(context.Background(), "visit", nil)
		fmt.Println(string(result.Value), err)
		if err := server.Close(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// Package serve answers /metrics once the engine has the extension.
func Example_telemetry() {
	server, err := engine.New(engine.Options{
		Name: "shop",
		Files: engine.Files{
			Tools:     fstest.MapFS{"add.hcl": {Data: []byte(`tool "add" { run = "return 1 + 1" }`), Mode: 0o644}},
			LookupEnv: os.LookupEnv, // OTEL_EXPORTER_OTLP_ENDPOINT and its like
		},
		Scripts:    engine.Scripts{Executor: scripting.Inline()},
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: os.ReadFile})},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	handler, err := serve.New(server, serve.Options{}).Handler()
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()
	if _, err := server.Call(context.Background(), "add", nil); err != nil {
		log.Fatal(err)
	}
	response, err := http.Get(site.URL + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "mcpd_calls_total") {
			fmt.Println(lines.Text())
		}
	}
	// Output: mcpd_calls_total{kind="tool",name="add",outcome="ok",via="client"} 1
}

// A script in TypeScript imports a file from its directory.
func Example_typescript() {
	tools := fstest.MapFS{
		"price.hcl": {Data: []byte(`
tool "price" {
  input "net" { type = integer }
  run = <<TS
    import { tax } from "./tax.ts";
    const gross: number = input.net * (1 + tax);
    return gross;
  TS
}
`)},
		"tax.ts": {Data: []byte("export const tax: number = 0.25;")},
	}
	server, err := engine.New(engine.Options{
		Name: "shop", Files: engine.Files{Tools: tools}, Scripts: engine.Scripts{Executor: scripting.Inline()}, Extensions: []engine.Extension{typescript.New()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	result, err := server.Call(context.Background(), "price", map[string]int{"net": 100})
	fmt.Println(string(result.Value), err)
	// Output: 125 <nil>
}
