package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// hostileNames are tool names that are keywords, existing globals, or no identifiers.
var hostileNames = []string{
	"crm", "get", "get_customer", "class", "await", "async", "let", "eval", "new", "print", "parallel", "console", "tools", "then", "toString", "constructor",
	"__proto__", "hasOwnProperty", "prototype", "arguments", "URL", "JSON", "undefined", "input", "call", "log", "2nd", "42", "a-b", "a.b", "_", "x_", "Iterator", "require", "GoError",
}

// newNamedUpstream serves tools that return their names.
func newNamedUpstream(t *testing.T, server string, names ...string) (url string) {
	s := mcp.NewServer(&mcp.Implementation{Name: server, Version: "1"}, nil)
	for _, name := range names {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Description: "A tool."}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: server + " " + name}}}, nil
		})
	}
	return web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// nameConflictServer returns a server with upstreams whose tools and prefixes collide, and the result of each
// tool by name.
func nameConflictServer(t *testing.T) (*engine.Server, map[string]string) {
	var config, tools strings.Builder
	config.WriteString("codeact {\n  max_calls = 256\n}\n")
	want := map[string]string{}
	for name, prefix := range map[string]string{"one": "crm_", "two": "crm-", "three": "get.", "four": "class_", "five": "_", "six": "sole_", "seven": "crm_x_", "eight": "free_", "nine": "free-"} {
		offered := hostileNames
		if name == "five" {
			offered = slices.Concat(hostileNames, []string{"free", "lone"})
		}
		fmt.Fprintf(&config, "upstream %q {\n  url    = %q\n  prefix = %q\n}\n", name, newNamedUpstream(t, name, offered...), prefix)
		for _, own := range offered {
			want[prefix+own] = name + " " + own
		}
	}
	delete(want, "crm_x_") // names with this prefix belong to seven upstreams
	for _, name := range slices.Concat(hostileNames, []string{"sole"}) {
		if !regexp.MustCompile(`^[a-zA-Z]`).MatchString(name) {
			continue
		}
		fmt.Fprintf(&tools, "tool %q {\n  run = \"return 'file %s';\"\n}\n", name, name)
		want[name] = "file " + name
	}
	return server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", config.String()), Tools: files("a.hcl", tools.String())}}), want
}

// runCode returns the result of code.
func runCode(t *testing.T, s *engine.Server, text string) (result string) {
	t.Helper()
	got := executeCall(t, s, runCodeCall(text))
	var of struct{ Result any }
	if err := json.Unmarshal(got.Structured, &of); err != nil {
		return outcomeLine(got)
	}
	return fmt.Sprint(of.Result)
}

// listedCall is a tool, and the call that code is told to use.
type listedCall struct{ name, call string }

// wantReached checks that each call reaches its tool.
func wantReached(t *testing.T, s *engine.Server, told []listedCall, want map[string]string) {
	t.Helper()
	var calls []string
	for _, c := range told {
		calls = append(calls, c.call)
	}
	for i, got := range outcomesOfCalls(t, s, calls) {
		if c := told[i]; got != want[c.name] {
			t.Errorf("%s is listed as %s, which returns %s", c.name, c.call, got)
		}
	}
}

// outcomesOfCalls returns the results or errors of calls, in few programs with many calls each.
func outcomesOfCalls(t *testing.T, s *engine.Server, calls []string) (all []string) {
	t.Helper()
	for some := range slices.Chunk(calls, 50) {
		var text strings.Builder
		for _, call := range some {
			fmt.Fprintf(&text, "await (async () => { try { return await %s({}) } catch (e) { return String(e) } })(),\n", call)
		}
		var got struct{ Result []string }
		result := executeCall(t, s, runCodeCall("["+text.String()+"]"))
		if err := json.Unmarshal(result.Structured, &got); err != nil || len(got.Result) != len(some) {
			t.Fatalf("%v: %s", err, outcomeLine(result))
		}
		all = append(all, got.Result...)
	}
	return all
}

// Search results, declarations and the prompt name calls that reach their tools.
func TestCodeNames_reachTheirTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	s, want := nameConflictServer(t)
	t.Run("search", func(t *testing.T) { searchNames(t, s, want) })
	t.Run("declaration", func(t *testing.T) { declaredNames(t, s, want) })
	t.Run("prompt", func(t *testing.T) { promptNames(t, s, want) })
}

func searchNames(t *testing.T, s *engine.Server, want map[string]string) {
	t.Helper()
	var told []listedCall
	for name := range want {
		var found struct{ Tools []struct{ Name, Call string } }
		query, _ := json.Marshal(map[string]any{"query": name, "limit": 50})
		if err := json.Unmarshal(executeCall(t, s, tool("search_tools", string(query))).Structured, &found); err != nil {
			t.Fatal(err)
		}
		for _, f := range found.Tools {
			if f.Name == name {
				told = append(told, listedCall{name, f.Call})
			}
		}
	}
	if len(told) < len(want)/2 {
		t.Errorf("a search finds no more than %d of %d", len(told), len(want))
	}
	wantReached(t, s, told, want)
}

// declared matches the start of a declaration: a function, or an object with one.
var declared = regexp.MustCompile(`declare (?:function (\w+)|const (\w+): \{\n(?:  /\*.*\*/\n)?  ("[^"]+"|[\w$]+))\(`)

func declaredNames(t *testing.T, s *engine.Server, want map[string]string) {
	t.Helper()
	var told []listedCall
	for name := range want {
		var text string
		argument, _ := json.Marshal(map[string]string{"name": name})
		if err := json.Unmarshal(executeCall(t, s, tool("describe_tool", string(argument))).Value, &text); err != nil {
			t.Fatal(err)
		}
		m := declared.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the declaration of %s is %s", name, text)
		}
		call := m[1]
		if call == "" {
			call = m[2] + "[" + quotedKey(m[3]) + "]"
		}
		told = append(told, listedCall{name, call})
	}
	wantReached(t, s, told, want)
}

func quotedKey(key string) string { return `"` + strings.Trim(key, `"`) + `"` }

func promptNames(t *testing.T, s *engine.Server, want map[string]string) {
	t.Helper()
	var reply struct {
		Messages []struct{ Content struct{ Text string } }
	}
	if err := json.Unmarshal(executeCall(t, s, call.Request{Kind: call.Prompts, Name: "code_mode", Arguments: []byte(`{"budget":"1"}`)}).Reply, &reply); err != nil {
		t.Fatal(err)
	}
	list := strings.Split(reply.Messages[0].Content.Text, "\n")[3]
	reached := map[string]bool{}
	for _, answer := range outcomesOfCalls(t, s, strings.Split(list, ", ")) {
		reached[answer] = true
	}
	for answer := range maps.Values(want) {
		if !reached[answer] {
			t.Errorf("the prompt has no call for %s", answer)
		}
		delete(reached, answer)
	}
	if diff := cmp.Diff(map[string]bool{}, reached); diff != "" {
		t.Errorf("its names are also (-want +got)\n%s", diff)
	}
}

func TestCodeNames_ambiguous(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n"+
		fmt.Sprintf("upstream \"crm\" {\n  url = %q\n}\nupstream \"erp\" {\n  url = %q\n}\n", newNamedUpstream(t, "crm", "find", "sell"), newNamedUpstream(t, "erp", "find", "buy")))}})
	for text, want := range map[string]string{
		"await sell({})":     "crm sell",
		"await buy({})":      "erp buy",
		"await crm.find({})": "crm find",
		"await erp.find({})": "erp find",
	} {
		if got := runCode(t, s, text); got != want {
			t.Errorf("%s is %s", text, got)
		}
	}
	if got := runCode(t, s, "await find({})"); !strings.HasPrefix(got, "EXECUTION_ERROR: ReferenceError: find is not defined") {
		t.Errorf("a name of both is %s", got)
	}
}
