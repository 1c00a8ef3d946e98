package engine_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

func TestTrial_largeScripts(t *testing.T) {
	var mu sync.Mutex
	var tried []string
	tools := files("t.hcl", `
tool "small" { run = "return 1;" }
tool "large" { run = file("large.js") }
tool "imports" { run = file("imports.js") }
`, "large.js", "return 1 +"+strings.Repeat("// more\n", 600)+" 1;",
		"imports.js", "import { two } from './two.mjs';\nreturn two;", "two.mjs", "export const two = 2;")
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}, Scripts: engine.Scripts{Trial: func(src scripting.Source) error {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, src.Name)
		return nil
	}}})
	slices.Sort(tried)
	if want := []string{"imports", "large"}; !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
	if _, err := s.Call(t.Context(), "large", nil); err != nil {
		t.Error(err)
	}
}

func TestTrial_failure(t *testing.T) {
	s, err := engine.New(engine.Options{
		Name: "t", Files: engine.Files{Tools: files("t.hcl", "tool \"t\" {\n  run = <<JS\n    "+strings.Repeat("f();\n", 1000)+"\n  JS\n}\n")},
		Scripts: engine.Scripts{Trial: func(scripting.Source) error { return errors.New("it went over its limits") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Load(t.Context())
	if err == nil || len(report.Problems) != 1 {
		t.Fatalf("got %v", err)
	}
	problem := report.Problems[0]
	if problem.Code != "script-too-costly" || !strings.Contains(problem.Summary, "it went over its limits") || problem.Range.Start.Line != 3 {
		t.Errorf("got %+v", problem)
	}
}
