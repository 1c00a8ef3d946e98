package extensions_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/typescript"
)

func loadCodeact(t *testing.T, extensions ...engine.Extension) (*engine.Snapshot, error) {
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

func TestCodemode_offersRunCode(t *testing.T) {
	snapshot, err := loadCodeact(t, codemode.New())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Tool("run_code") == nil {
		t.Error("there is no tool run_code")
	}
}

func TestCodemode_namesMissingExtension(t *testing.T) {
	_, err := loadCodeact(t)
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

func loadTool(t *testing.T, body string, extensions ...engine.Extension) (*engine.Server, error) {
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

func TestTypescript(t *testing.T) {
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
			_, err := loadTool(t, row.body)
			problems, ok := errors.AsType[diag.List](err)
			if !ok || len(problems) != 1 {
				t.Fatalf("without the extension: %v", err)
			}
			d := problems[0]
			if d.Code != "missing-extension" || d.Range.String() != row.at || !strings.Contains(d.Detail, "github.com/mcpd/mcpd/extensions/typescript") {
				t.Errorf("without the extension: %s: %s: %s (%s)", d.Range, d.Code, d.Summary, d.Detail)
			}
			s, err := loadTool(t, row.body, typescript.New())
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
