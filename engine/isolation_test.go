package engine_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

func TestNew_warnsOfScriptsInProcess(t *testing.T) {
	for name, test := range map[string]struct {
		options engine.Options
		warns   int
	}{
		"tool files":            {engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}}, 1},
		"an operator's file":    {engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "")}}, 1},
		"no files":              {engine.Options{}, 0},
		"an executor is chosen": {engine.Options{Files: engine.Files{Tools: files("add.hcl", addTool)}, Scripts: engine.Scripts{Executor: scripting.Inline()}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBuffer{}
			test.options.Logger = log.logger()
			s := server(t, test.options)
			if _, err := s.Reload(t.Context(), engine.Change{}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "scripts run in this process"); got != test.warns {
				t.Errorf("%d warnings, want %d:\n%s", got, test.warns, log.String())
			}
		})
	}
}
