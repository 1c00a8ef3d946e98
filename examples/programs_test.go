//go:build unix

//lint:file-ignore SA1019 sampling is deprecated as of 2026-07-28, and older clients use it

package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// programServer serves a copy of the example with its own program.
func programServer(t *testing.T) (server *engine.Server, log string) {
	t.Helper()
	dir := copyOf(t, "programs")
	for _, name := range []string{"mcpd.hcl", "tools.d/deploy.hcl"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		moved := bytes.ReplaceAll(text, []byte("/opt/deploy/bin"), []byte(filepath.Join(dir, "bin")))
		if err := errors.Join(err, os.WriteFile(path, moved, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return load(t, dir, engine.Options{Front: serve.Checks{}}), filepath.Join(dir, "bin", "deploy.log")
}

func TestPrograms_testBlocks(t *testing.T) {
	server, _ := programServer(t)
	passes(t, server, 5)
}

// TestApproval_byModel asks a model during the call. The log of the program shows each
// action.
func TestApproval_byModel(t *testing.T) {
	const planned, applied = "plan|crm|\n", "apply|--service=crm|--|v7|\n"
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, c := range []struct{ answer, text, log string }{
			{"PROCEED: there is a backup.", "Deployed crm: applied: v7", planned + applied},
			{"I would not proceed.", "Not deployed: I would not proceed.", planned},
			{"STOP. To PROCEED is a risk.", "Not deployed: STOP. To PROCEED is a risk.", planned},
			{"PROCEEDING is a risk.", "Not deployed: PROCEEDING is a risk.", planned},
			{"", "Not deployed: ", planned},
		} {
			server, log := programServer(t)
			if got := ask(t, server, version, c.answer); got != c.text {
				t.Errorf("%s %q: got %q, want %q", version, c.answer, got, c.text)
			}
			if got, err := os.ReadFile(log); err != nil || string(got) != c.log {
				t.Errorf("%s %q: program log %q, %v, want %q", version, c.answer, got, err, c.log)
			}
		}
	}
}

// ask calls the tool as a client whose model gives an answer.
func ask(t *testing.T, server *engine.Server, version, answer string) string {
	t.Helper()
	session := connect(t, server, version, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "test", StopReason: "endTurn", Content: &mcp.TextContent{Text: answer}}, nil
		},
	})
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy_changes", Arguments: map[string]any{"service": "crm", "summary": "v7"}})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("got %+v", result.Content[0])
	}
	return text.Text
}

func argumentsOf(t *testing.T, service, summary string) []byte {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"service": service, "summary": summary})
	if err != nil {
		t.Fatal(err)
	}
	return arguments
}

func TestArguments_notInterpretedByShell(t *testing.T) {
	for _, summary := range []string{
		"fix; rm -rf /", "$(id)", "`id`", "a && b", "a | b > c", "--all", "-", "'", `"`, "*", "~", "a\\", "{service}", "@file", "%s", "é", " ",
	} {
		server, log := programServer(t)
		arguments := argumentsOf(t, "shop", summary)
		result := server.Execute(t.Context(), call.Request{Kind: call.Tools, Name: "deploy_changes", Arguments: arguments})
		if result.Err != nil {
			t.Errorf("%q: %v", summary, result.Err)
		}
		want := "plan|shop|\napply|--service=shop|--|" + summary + "|\n"
		if got, err := os.ReadFile(log); err != nil || string(got) != want {
			t.Errorf("%q: program log %q, %v", summary, got, err)
		}
	}
	for _, summary := range []string{"a\nb", "a\x00b", ""} {
		server, log := programServer(t)
		result := server.Execute(t.Context(), call.Request{Kind: call.Tools, Name: "deploy_changes", Arguments: argumentsOf(t, "shop", summary)})
		if result.Err == nil || !strings.Contains(result.Err.Message, "summary") {
			t.Errorf("%q: %v", summary, result.Err)
		}
		if got, err := os.ReadFile(log); err != nil || string(got) != "plan|shop|\n" {
			t.Errorf("%q: program log %q, %v", summary, got, err)
		}
	}
	for _, service := range []string{"--all", "-x", "shop;id", "shop crm", "Shop", "../shop", "shop\n", "ѕhop", ""} {
		server, log := programServer(t)
		arguments := argumentsOf(t, service, "v7")
		result := server.Execute(t.Context(), call.Request{Kind: call.Tools, Name: "deploy_changes", Arguments: arguments})
		if result.Err == nil || !strings.Contains(result.Err.Message, "service") {
			t.Errorf("%q: %v", service, result.Err)
		}
		if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: the program ran: %v", service, err)
		}
	}
}
