package engine_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

// stateBlock returns a state block with a schema, and its secret.
func stateBlock(schema string) string {
	return fmt.Sprintf("state {\n  url = \"postgres://app:${secret.p}@127.0.0.1:1/app?schema=%s\"\n}\nsecret \"p\" { env = \"P\" }\n", schema)
}

// The state stays where it was until the server restarts.
func TestReload_stateBlockChanged(t *testing.T) {
	var log strings.Builder
	config := files("mcpd.hcl", stateBlock("one"))
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: config}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	reload := func(text string, warns bool) {
		t.Helper()
		log.Reset()
		config["mcpd.hcl"].Data = []byte(text)
		report, err := s.Reload(t.Context(), engine.Change{Config: true})
		if err != nil {
			t.Fatal(err)
		}
		warned := len(report.Problems) == 1 && report.Problems[0].Code == "restart-needed" && strings.Contains(report.Problems[0].Summary, "state block")
		if warned != warns || s.Status().RestartNeeded != warns || strings.Contains(log.String(), "state block changed, restart needed") != warns {
			t.Errorf("problems %v, restart needed: %v, log:\n%s", report.Problems, s.Status().RestartNeeded, log.String())
		}
	}
	reload("# moved\n\n"+stateBlock("one"), false)
	reload(stateBlock("two"), true)
	reload("secret \"p\" { env = \"P\" }\n", true)
	// The block of the start is still in effect.
	if _, err := s.Inside().State(); err == nil || !strings.Contains(err.Error(), `secret "p"`) {
		t.Errorf("state after the block was removed: %v", err)
	}
	reload(stateBlock("one"), false)
}

// Options and a mode for a program beside the server take precedence over the block.
func TestReload_stateBlockIgnored(t *testing.T) {
	for name, o := range map[string]engine.Options{"file": {StatePath: filepath.Join(t.TempDir(), "s.db")}, "mode": {Mode: engine.ReadOnly}} {
		config := files("mcpd.hcl", stateBlock("one"))
		o.Files = engine.Files{Tools: files("t.hcl", echo), Config: config}
		s := server(t, o)
		config["mcpd.hcl"].Data = []byte(stateBlock("two"))
		if report, err := s.Reload(t.Context(), engine.Change{Config: true}); err != nil || len(report.Problems) != 0 {
			t.Errorf("%s: %v, %v", name, report.Problems, err)
		}
		if s.Status().RestartNeeded {
			t.Errorf("%s: a restart is needed", name)
		}
	}
}
