package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAClientThatIsGoneIsNoReasonToDie: the answer has no reader any more, and
// the hook of its call runs all the same.
func TestAClientThatIsGoneIsNoReasonToDie(t *testing.T) {
	program, tools := buildDaemon(t), t.TempDir()
	text := `tool "hello" { run = "return 'hello';" }
hook "ends" {
  on  = ["end"]
  run = "log.info('the hook runs');"
}
`
	if err := os.WriteFile(filepath.Join(tools, "hello.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	unread.Close()
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mcpd := exec.CommandContext(ctx, program, "serve", "--stdio", "--tools", tools)
	mcpd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	var log bytes.Buffer
	mcpd.Stdout, mcpd.Stderr = out, &log
	var status *exec.ExitError
	if err := mcpd.Run(); !errors.As(err, &status) || status.ExitCode() != exitFindings {
		t.Errorf("mcpd ended with %v", err)
	}
	for _, said := range []string{"the hook runs", "write a message"} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("the log does not say %q:\n%s", said, &log)
		}
	}
}
