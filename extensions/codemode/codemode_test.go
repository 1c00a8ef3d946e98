package codemode_test

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
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/scripting"
)

func load(t *testing.T, extensions ...engine.Extension) (*engine.Snapshot, error) {
	t.Helper()
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte("codeact {\n  tools = [\"*\"]\n}\n")}}
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Config: config}, Extensions: extensions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	_, err = s.Load(t.Context())
	return s.Snapshot(), err
}

func TestNew_offersRunCode(t *testing.T) {
	snapshot, err := load(t, codemode.New())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Tool("run_code") == nil {
		t.Error("there is no tool run_code")
	}
}

func TestLoad_namesMissingExtension(t *testing.T) {
	_, err := load(t)
	problems, ok := errors.AsType[diag.List](err)
	if !ok || len(problems) != 1 {
		t.Fatalf("the error is %v", err)
	}
	d := problems[0]
	if d.Code != "missing-extension" || d.Range.String() != "mcpd.hcl:1:1" || !strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/codemode") {
		t.Errorf("%s: %s: %s (%s)", d.Range, d.Code, d.Summary, d.Detail)
	}
}

func TestNew_refusesAnExtensionTwice(t *testing.T) {
	_, err := engine.New(engine.Options{Name: "test", Extensions: []engine.Extension{codemode.New(), codemode.New()}})
	if want := `new server: Options.Extensions[1] "extensions/codemode" is listed twice`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// The program of an agent calls a tool twice and adds the results.
func Example() {
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
