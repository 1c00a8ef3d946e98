package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The client disconnects before the response; the server must not crash and must run
// the hook of the call.
func TestStdio_clientDisconnects(t *testing.T) {
	t.Parallel()
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
		t.Errorf("mcpd exited with %v", err)
	}
	for _, said := range []string{"the hook runs", "write a message"} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("the log does not contain %q:\n%s", said, &log)
		}
	}
}

// stdioServer is a running mcpd serve --stdio or mcpd attach.
type stdioServer struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner // of its standard output
	log   bytes.Buffer   // complete after the exit
}

func serveStdio(t *testing.T, program, dir string, env []string, flags ...string) *stdioServer {
	t.Helper()
	return startStdio(t, program, dir, env, append([]string{"serve", "--stdio"}, flags...)...)
}

// startStdio runs a verb that speaks MCP on its standard streams.
func startStdio(t *testing.T, program, dir string, env []string, args ...string) *stdioServer {
	t.Helper()
	s := &stdioServer{cmd: exec.CommandContext(t.Context(), program, args...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = dir, env, &s.log
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(out)
	s.lines.Buffer(nil, 1<<20)
	return s
}

// end closes the input of the server, which must exit with 0. It returns the unread
// lines.
func (s *stdioServer) end(t *testing.T) (rest string) {
	t.Helper()
	_ = s.in.Close()
	for s.lines.Scan() {
		rest += s.lines.Text() + "\n"
	}
	if err := s.cmd.Wait(); err != nil || s.lines.Err() != nil {
		t.Errorf("the server exited with %v, its output ended with %v", err, s.lines.Err())
	}
	return rest
}
