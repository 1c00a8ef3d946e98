package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/scripting"
)

// The second server finds the value that the first one stored.
func Example() {
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
