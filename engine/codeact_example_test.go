package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// exampleLine matches a line of the example in the prompt code_mode.
var exampleLine = regexp.MustCompile(`^const \w+ = await (.*);$`)

// exampleOf returns the calls in the example of a server's prompt.
func exampleOf(t *testing.T, s *engine.Server) (calls []string) {
	t.Helper()
	var reply struct {
		Messages []struct{ Content struct{ Text string } }
	}
	if err := json.Unmarshal(executeCall(t, s, call.Request{Kind: call.Prompts, Name: "code_mode"}).Reply, &reply); err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(reply.Messages[0].Content.Text, "\nExample:\n")
	for line := range strings.Lines(behind) {
		m := exampleLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			break
		}
		calls = append(calls, m[1])
	}
	return calls
}

// The example of each shipped tool is a valid program with valid arguments.
func TestCodeExample_isAccepted(t *testing.T) {
	config := files("mcpd.hcl", "codeact {}\n")
	s := server(t, engine.Options{Files: engine.Files{Config: config, Tools: os.DirFS(filepath.Join("..", "tools.d"))}})
	without := 0
	for _, shipped := range s.Snapshot().Tools() {
		if name := shipped.Name(); name == "run_code" || name == "call_tool" || strings.HasSuffix(name, "_tools") || name == "describe_tool" {
			continue
		}
		config["mcpd.hcl"].Data = []byte("codeact {\n  tools = [\"" + shipped.Name() + "\"]\n}\n")
		reloadAll(t, s)
		calls := exampleOf(t, s)
		if len(calls) != 1 {
			without++
			t.Logf("%s has no example", shipped.Name())
			continue
		}
		arguments, _ := json.Marshal(map[string]string{"code": "await " + calls[0], "mode": "plan"})
		got := outcomeLine(executeCall(t, s, tool("run_code", string(arguments))))
		if strings.Contains(got, "INVALID_INPUT") || strings.Contains(got, "script-") || strings.Contains(got, "ReferenceError") {
			t.Errorf("%s: %s", calls[0], got)
		}
	}
	if without > len(s.Snapshot().Tools())/4 {
		t.Errorf("%d tools have no example", without)
	}
}

func TestCodeExample_hasToolsOfItsCaller(t *testing.T) {
	none := codeServer(t, "  tools = [\"no_such_*\"]")
	if calls := exampleOf(t, none); calls != nil {
		t.Errorf("without tools: %q", calls)
	}
	secret := codeServer(t, "  tools = [\"secret_tool\"]")
	if calls := exampleOf(t, secret); calls != nil {
		t.Errorf("for a denied tool: %q", calls)
	}
	for _, call := range exampleOf(t, codeServer(t, "")) {
		if !strings.HasPrefix(call, "read_file(") && !strings.HasPrefix(call, "search_web(") {
			t.Errorf("%s is not read-only", call)
		}
	}
}
