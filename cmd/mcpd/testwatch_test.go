package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A watching mcpd test runs the tests after each change, also after files with errors and
// failed tests, until it is interrupted.
func TestTest_watch(t *testing.T) {
	t.Parallel()
	program, dir := buildDaemon(t), t.TempDir()
	file := filepath.Join(dir, "tools.d", "a.hcl")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := func(run string) string {
		return "tool \"a\" {\n  run = \"" + run + "\"\n}\ntest \"a test\" {\n  tool = \"a\"\n  expect { output = 1 }\n}\n"
	}
	save(t, file, text("return (1;"))
	w := startStdio(t, program, dir, os.Environ(), "test", "--watch", "--coverage")
	save(t, file, text("return 2;"))
	w.hear(t, "0 passed, 1 failed")
	save(t, file, text("return 1;"))
	w.hear(t, "1 passed, 0 failed")
	w.hear(t, "1 of 1 statement")
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t)
}

func TestTest_watchIgnoresReport(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := testFlags{files: projectFlags{tools: "tools.d", config: "mcpd.hcl"}, junit: filepath.Join("tools.d", "report.xml")}
	skip := f.watched(e, nil).Skip
	if !skip("report.xml") || !skip(".git") || skip("a.hcl") {
		t.Error("a report starts the next run, or a change does not")
	}
}
