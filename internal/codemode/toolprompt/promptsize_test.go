package toolprompt

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// catalogOf returns a list of typical tools: business nouns with verbs.
func catalogOf(n int) []Tool {
	servers := []string{"crm", "billing", "issues", "wiki", "calendar", "deploy", "storage", "mail", "search", "metrics"}
	nouns := []string{"customer", "invoice", "ticket", "page", "event", "release", "file", "message", "query", "report"}
	verbs := []struct{ name, does string }{
		{"get", "Returns one %s by its id. Fails with NOT_FOUND where there is none, and where the caller may not see it."},
		{"list", "Lists the %ss that match, the newest first. Answers in pages: hand the cursor of one to get the next."},
		{"create", "Creates a %s and returns it.\n\nAll members that are not optional are needed. The id is made by the server."},
		{"update", "Changes some members of a %s and returns it as it is then. Members that are absent stay as they are."},
		{"delete", "Deletes a %s for good. This cannot be undone."},
	}
	var tools []Tool
	for i := range n {
		server, verb := servers[i/len(verbs)%len(servers)], verbs[i%len(verbs)]
		noun := nouns[(i/len(verbs)+i/len(verbs)/len(servers))%len(nouns)]
		if round := i / (len(verbs) * len(servers)); round > 0 {
			noun = []string{"", "draft", "archived", "shared", "linked", "open", "old", "private", "pinned", "merged", "late"}[round%11] + "_" + noun
		}
		member := verb.name + "_" + noun
		tools = append(tools, Tool{
			Name: server + "_" + member, Group: server, Member: member, Description: fmt.Sprintf(verb.does, strings.ReplaceAll(noun, "_", " ")),
			Input: inputOf(verb.name), Output: outputOf(verb.name), ReadOnly: truth(i%len(verbs) < 2), Destructive: truth(verb.name == "delete"),
		})
	}
	return tools
}

const (
	idSchema     = `"id":{"type":"string","description":"The id, as the list has it","pattern":"^[a-z]{2}_[0-9a-z]{12}$"}`
	fieldsSchema = `"name":{"type":"string","description":"What people call it","minLength":1,"maxLength":200},
		"status":{"type":"string","enum":["open","waiting","done","cancelled"],"description":"How far it is","default":"open"},
		"owner":{"type":"string","format":"email","description":"The address of who looks after it"},
		"due":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"default":null,"description":"When it is to be done"},
		"tags":{"type":"array","items":{"type":"string","maxLength":40},"maxItems":20,"description":"Words by which it is found"},
		"amount":{"type":"object","properties":{"value":{"type":"number","minimum":0},"currency":{"type":"string","pattern":"^[A-Z]{3}$"}},"required":["value","currency"]}`
)

func inputOf(verb string) json.RawMessage {
	switch verb {
	case "list":
		return json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words that it has in its name"},"limit":{"type":"integer","minimum":1,"maximum":100,"default":20,"description":"How many are returned"},
			"cursor":{"type":"string","description":"Where the page before ended"},"status":{"type":"array","items":{"type":"string","enum":["open","waiting","done","cancelled"]}}},"additionalProperties":false}`)
	case "create":
		return json.RawMessage(`{"type":"object","properties":{` + fieldsSchema + `},"required":["name","status"],"additionalProperties":false}`)
	case "update":
		return json.RawMessage(`{"type":"object","properties":{` + idSchema + `,` + fieldsSchema + `},"required":["id"],"additionalProperties":false}`)
	}
	return json.RawMessage(`{"type":"object","properties":{` + idSchema + `},"required":["id"],"additionalProperties":false}`)
}

func outputOf(verb string) json.RawMessage {
	item := `{"type":"object","properties":{"id":{"type":"string"},` + fieldsSchema + `,"created":{"type":"string","format":"date-time"}},"required":["id","name","status","created"]}`
	switch verb {
	case "list":
		return json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","items":` + item + `},"cursor":{"type":"string"}},"required":["items"]}`)
	case "delete":
		return nil
	}
	return json.RawMessage(item)
}

// listed returns tools as an MCP tool list.
func listed(t testing.TB, tools []Tool) string {
	t.Helper()
	type listing struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	}
	list := make([]listing, len(tools))
	for i, tool := range tools {
		list[i] = listing{tool.Name, tool.Description, tool.Input, tool.Output}
	}
	text, err := json.Marshal(map[string]any{"tools": list})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// searchTools are the tools of an agent that searches.
func searchTools() []Tool {
	query := json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words to look for"}},"required":["query"]}`)
	name := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool"}},"required":["name"]}`)
	code := json.RawMessage(`{"type":"object","properties":{"code":{"type":"string","description":"The code to run"}},"required":["code"]}`)
	return []Tool{
		{Name: "search_tools", Description: "Finds tools by words.", Input: query},
		{Name: "describe_tool", Description: "Declares one tool in full.", Input: name},
		{Name: "run_code", Description: "Runs JavaScript that calls tools.", Input: code},
	}
}

// searched returns the text that an agent reads to search for a tool and describe it.
func searched(t testing.TB, tools []Tool) string {
	t.Helper()
	hits := NewIndex(tools).Search("change the status of an invoice", 10, nil)
	if len(hits) != 10 {
		t.Fatalf("%d tools are found", len(hits))
	}
	text := listed(t, searchTools())
	for _, hit := range hits {
		text += tools[hit.Index].Call() + ": " + FirstSentence(tools[hit.Index].Description) + "\n"
	}
	return text + Describe(tools[hits[0].Index])
}

// TestPromptSizes_documented checks the table in docs/reference/code-mode.md.
func TestPromptSizes_documented(t *testing.T) {
	const page, head = "../../../docs/reference/code-mode.md", "| tools | as a tool list | declared | without constraints | first sentences | names alone | by search |\n|---|---|---|---|---|---|---|\n"
	table := head
	for _, n := range []int{50, 500} {
		tools := catalogOf(n)
		row := []int{Tokens(listed(t, tools)), Tokens(Prompt(tools, Options{}))}
		for _, d := range []Detail{WithoutConstraints, FirstSentences, NamesOnly} {
			row = append(row, Tokens(prompt(tools, exampleCalls(tools), d, Options{Search: true})))
		}
		row = append(row, Tokens(searched(t, tools)))
		table += fmt.Sprintf("| %d | %s |\n", n, strings.Trim(strings.ReplaceAll(fmt.Sprint(row), " ", " | "), "[]"))
		for i := 1; i < 5; i++ {
			if row[i] >= row[i-1] {
				t.Errorf("column %d is not shorter than the previous one: %v", i, row)
			}
		}
		if row[5] > 1500 {
			t.Errorf("a search costs %d tokens", row[5])
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, shown, _ := strings.Cut(string(text), head)
	rows, behind, found := strings.Cut(shown, "\n\n")
	if !found {
		t.Fatalf("%s has no table starting with\n%s", page, head)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+table+"\n"+behind), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(head+rows+"\n", table); diff != "" {
		t.Errorf("%s is outdated; run with -update (-page +measured)\n%s", page, diff)
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "client": 1, "customer": 2, "the web": 2, "getClient": 2, "get_client": 2, "HTTP": 1, "1234": 2,
		"a  b": 3, "a\n  b": 3, "a;\n  b": 4, " a": 1, "({ a: 1 })": 5, "\"a\":{\"b": 3, "größe": 3, "Привет": 3, "天気": 2, "😀": 1,
	} {
		if got := Tokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	for _, n := range []int{50, 500} {
		tools := catalogOf(n)
		b.Run(fmt.Sprintf("%d tools", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Prompt(tools, Options{})
			}
		})
		b.Run(fmt.Sprintf("%d tools in a small budget", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Prompt(tools, Options{Budget: 1})
			}
		})
	}
}

func BenchmarkNewIndex(b *testing.B) {
	tools := catalogOf(500)
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(tools)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := NewIndex(catalogOf(5000))
	for _, query := range []string{"change the status of an invoice", "crm_get_customer", "c", strings.Repeat("list the customers by name or status ", 100)} {
		b.Run(fmt.Sprintf("%.16s", query), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.Search(query, 10, func(i int) bool { return i%3 != 0 })
			}
		})
	}
}
