package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go SDK lists and calls the shipped tools over Streamable HTTP, over stdio
// and through mcpd attach while a file is edited. Each edit is announced, and the next call runs the new
// version.
func TestGoSDK_announcedEdits(t *testing.T) {
	t.Parallel()
	program := buildDaemon(t)
	for name, connect := range map[string]func(t *testing.T, tools string) mcp.Transport{
		"streamable": func(t *testing.T, tools string) mcp.Transport {
			d, err := startDaemon(program, filepath.Dir(tools), append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), []string{"--tools", tools})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.kill)
			return &mcp.StreamableClientTransport{Endpoint: d.url + "/mcp"}
		},
		"attach": func(t *testing.T, tools string) mcp.Transport {
			env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
			d, err := startDaemon(program, filepath.Dir(tools), env, []string{"--tools", tools})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.kill)
			attach := exec.Command(program, "attach")
			attach.Dir, attach.Env = filepath.Dir(tools), env
			return &mcp.CommandTransport{Command: attach}
		},
		"stdio": func(_ *testing.T, tools string) mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command(program, "serve", "--stdio", "--tools", tools)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tools := filepath.Join(t.TempDir(), "tools.d")
			if err := os.CopyFS(tools, os.DirFS("../../tools.d")); err != nil {
				t.Fatal(err)
			}
			followEdits(t, connect(t, tools), tools)
		})
	}
}

func followEdits(t *testing.T, transport mcp.Transport, tools string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	changed := make(chan struct{}, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	shipped := 0
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		shipped++
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{}}); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if shipped < 10 {
		t.Errorf("only %d tools are shipped", shipped)
	}
	for version := 1; version <= 3; version++ {
		text := fmt.Sprintf("tool \"probe\" {\n  description = \"Version %d\"\n  run = <<JS\n    return \"version %[1]d\";\n  JS\n}\n", version)
		save(t, filepath.Join(tools, "probe.hcl"), text)
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("version %d was never announced", version)
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "probe"})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Content[0].(*mcp.TextContent).Text; got != fmt.Sprintf("version %d", version) {
			t.Errorf("the call after version %d was announced returned %q", version, got)
		}
	}
}

// save replaces a watched file atomically, like an editor.
func save(t testing.TB, path, text string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, path); err != nil {
		t.Fatal(err)
	}
}
