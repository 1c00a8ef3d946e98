package typescript_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/scripting"
)

func load(t *testing.T, body string, extensions ...engine.Extension) (*engine.Server, error) {
	t.Helper()
	tools := fstest.MapFS{
		"t.hcl":  {Data: []byte("tool \"t\" {\n  " + body + "\n}\n")},
		"two.ts": {Data: []byte("export const two: number = 2")},
	}
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Tools: tools}, Extensions: extensions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	_, err = s.Load(t.Context())
	return s, err
}

func TestNew(t *testing.T) {
	const forAwait = "for await (const v of [1]) {} return 2;"
	const generator = "async function* g() { yield 2 } return (await g().next()).value;"
	for _, row := range []struct{ name, body, at string }{
		{"typescript", "run = <<TS\n    const n: number = 2; return n;\n  TS", "tools.d/t.hcl:3:1"},
		{"import", "run = <<JS\n    import { two } from './two.ts'; return two;\n  JS", "tools.d/t.hcl:3:5"},
		{"for await", "run = \"" + forAwait + "\"", "tools.d/t.hcl:2:14"},
		{"async generator", "run = \"" + generator + "\"", "tools.d/t.hcl:2:24"},
		{"large script", "run = \"" + forAwait + strings.Repeat(" ", 8<<10) + "\"", "tools.d/t.hcl:2:14"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, row.body)
			problems, ok := errors.AsType[diag.List](err)
			if !ok || len(problems) != 1 {
				t.Fatalf("without the extension: %v", err)
			}
			d := problems[0]
			if d.Code != "missing-extension" || d.Range.String() != row.at || !strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/typescript") {
				t.Errorf("without the extension: %s: %s: %s (%s)", d.Range, d.Code, d.Summary, d.Detail)
			}
			s, err := load(t, row.body, typescript.New())
			if err != nil {
				t.Fatal(err)
			}
			result, err := s.Call(t.Context(), "t", nil)
			if err != nil || string(result.Value) != "2" {
				t.Errorf("with the extension: %+v, %v", result, err)
			}
		})
	}
}

// A script in TypeScript imports a file from its directory.
func Example() {
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
