package toolprompt

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrompt_small(t *testing.T) {
	holdGolden(t, "small.md", Prompt(smallCatalog(), Options{Search: true, Limits: Limits{Time: 30 * time.Second, Calls: 100, Running: 8, Output: 256 << 10, Memory: 128 << 20}}))
	if m := mistakes(Declare(smallCatalog(), Full)); m != "" {
		t.Error(m)
	}
}

// TestPrompt_budget pins the text at each level of detail.
func TestPrompt_budget(t *testing.T) {
	catalog := smallCatalog()
	for d, name := range []string{"full.md", "without_constraints.md", "without_members.md", "without_results.md", "first_sentences.md", "without_arguments.md", "names_only.md"} {
		want := prompt(catalog, exampleCalls(catalog), Detail(d), Options{Search: true})
		if Detail(d) > Full {
			holdGolden(t, name, want)
		}
		if got := Prompt(catalog, Options{Search: true, Budget: Tokens(want)}); got != want {
			t.Errorf("a budget of exactly the tokens of %s returns another text:\n%s", name, got)
		}
		if got, next := Prompt(catalog, Options{Search: true, Budget: Tokens(want) - 1}), prompt(catalog, exampleCalls(catalog), min(Detail(d)+1, NamesOnly), Options{Search: true}); got != next {
			t.Errorf("a budget of one token less than %s does not return the next level:\n%s", name, got)
		}
	}
}

func TestPrompt_withoutSearch(t *testing.T) {
	short := Prompt(smallCatalog(), Options{Budget: 1})
	if !strings.Contains(short, "this leaves out everything but the names.\n") || strings.Contains(short, "describe_tool") || strings.Contains(short, "search_tools") {
		t.Errorf("the prompt is\n%s", short)
	}
}

func TestPrompt_budgetKeepsNames(t *testing.T) {
	tools := append(catalogOf(100), hostileCatalog()...)
	for _, budget := range []int{1, 1500, 5000, 9000, 16_000, 22_000, 30_000} {
		text := Prompt(tools, Options{Budget: budget})
		for _, e := range newEntries(tools) {
			for i := range e.tools {
				name := e.call(i)
				if e.members != nil {
					name = propertyKey(e.members[i])
				}
				if !strings.Contains(text, name) {
					t.Errorf("in a budget of %d, %s is gone", budget, e.call(i))
				}
			}
		}
	}
}

// TestPrompt_rfcSentences checks RFC 003, "System Prompt for Tool Availability".
func TestPrompt_rfcSentences(t *testing.T) {
	for name, text := range map[string]string{"none": Prompt(nil, Options{}), "small": Prompt(smallCatalog(), Options{}), "names": Prompt(smallCatalog(), Options{Budget: 1})} {
		rest := text
		for _, sentence := range []string{
			"You are writing JavaScript code that will be executed.\n",
			"The following tools are pre-imported and available for use:\n\n",
			"\nIMPORTANT: Do NOT write import statements. All tools are already available.\n",
			"Simply call the functions directly by name.\n",
		} {
			var found bool
			if _, rest, found = strings.Cut(rest, sentence); !found {
				t.Errorf("%s: %q is missing or misplaced", name, sentence)
			}
		}
	}
}

func TestPrompt_toolOrder(t *testing.T) {
	tools := slices.DeleteFunc(append(hostileCatalog(), catalogOf(30)...), func(t Tool) bool { return t.Group == "read_it" })
	want := Prompt(tools, Options{})
	slices.Reverse(tools)
	if got := Prompt(tools, Options{}); got != want {
		t.Errorf("the prompt of the same tools is another:\n%s", got)
	}
}

func TestDescribe(t *testing.T) {
	text := Prompt(smallCatalog(), Options{})
	for _, tool := range smallCatalog() {
		declared := Describe(tool)
		if tool.Group == "" && tool.Name != "weather.now" && !strings.Contains(text, declared) {
			t.Errorf("%s is declared as\n%s", tool.Name, declared)
		}
		if m := mistakes(declared); m != "" {
			t.Error(m)
		}
	}
}

func TestPrompt_exampleOfItsTools(t *testing.T) {
	object := func(properties, required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`)
	}
	one := func(schema string) []Tool { return []Tool{{Name: "fetch_it", Input: object(`"a":`+schema, `"a"`)}} }
	call := func(value string) string {
		return "\nExample:\nconst results = await fetch_it({ a: " + value + " });\n"
	}
	yes := truth(true)
	for name, row := range map[string]struct {
		tools []Tool
		want  string
	}{
		"none":         {nil, ""},
		"of the RFC":   {[]Tool{smallCatalog()[0], smallCatalog()[1]}, "\nExample:\nconst results = await read_file({ path: \"/workspace/config.json\" });\nconst content = await search_web({ query: \"python async\" });\n"},
		"no arguments": {[]Tool{{Name: "now", Input: object("", "")}}, "\nExample:\nconst results = await now({});\n"},
		"arguments first": {[]Tool{{Name: "a", Input: object("", "")}, {Name: "b", Input: object(`"n":{"type":"integer"}`, `"n"`)}},
			"\nExample:\nconst results = await b({ n: 5 });\nconst content = await a({});\n"},
		"reads before others": {[]Tool{{Name: "a", Input: object("", ""), Destructive: yes}, {Name: "b", Input: object("", "")}, {Name: "c", Input: object("", ""), ReadOnly: yes}},
			"\nExample:\nconst results = await c({});\nconst content = await b({});\n"},
		"destroys alone":  {[]Tool{{Name: "a", Input: object("", ""), Destructive: yes}}, "\nExample:\nconst results = await a({});\n"},
		"other names":     {[]Tool{{Name: "crm-get", Group: "crm", Member: "get-it", Input: object("", "")}, {Name: "any.name", Input: object("", "")}}, "\nExample:\nconst results = await crm[\"get-it\"]({});\nconst content = await tools[\"any.name\"]({});\n"},
		"taken variables": {[]Tool{{Name: "results", Input: object("", "")}, {Name: "first", Input: object("", "")}}, "\nExample:\nconst content = await first({});\nconst second = await results({});\n"},

		"const":               {one(`{"const":{"b":[1,null]}}`), call("{ b: [1, null] }")},
		"enum":                {one(`{"enum":["x\ny","z"]}`), call(`"z"`)},
		"pattern":             {one(`{"type":"string","pattern":"^(C|D)-[0-9]{4}\\b.?$"}`), call(`"C-1111"`)},
		"pattern and name":    {one(`{"type":"string","pattern":"^[a-z]+$"}`), call(`"value"`)},
		"pattern of too much": {one(`{"type":"string","pattern":"^[0-9]{100}$"}`), ""},
		"no such pattern":     {one(`{"type":"string","pattern":"^(?=x)"}`), ""},
		"format":              {one(`{"type":"string","format":"date-time"}`), call(`"2025-01-31T09:30:00Z"`)},
		"length":              {one(`{"type":"string","minLength":8,"maxLength":9}`), call(`"xxxxxxxx"`)},
		"too long":            {one(`{"type":"string","minLength":80}`), ""},
		"minimum":             {one(`{"type":"integer","minimum":100}`), call("100")},
		"between":             {one(`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.5}`), call("0.25")},
		"multiple":            {one(`{"type":"integer","minimum":100,"multipleOf":7}`), call("105")},
		"no number":           {one(`{"type":"integer","minimum":3,"maximum":2}`), ""},
		"boolean":             {one(`{"type":"boolean"}`), call("true")},
		"list":                {one(`{"type":"array","items":{"type":"string"},"minItems":2}`), call(`["value", "value"]`)},
		"empty list":          {one(`{"type":"array","items":false}`), call(`[]`)},
		"object":              {one(`{"type":"object","properties":{"b-c":{"type":"boolean"}},"required":["b-c"]}`), call(`{ "b-c": true }`)},
		"anyOf":               {one(`{"anyOf":[{"type":"integer","minimum":2,"maximum":1},{"type":"null"}]}`), call("null")},
		"reference":           {[]Tool{{Name: "fetch_it", Input: json.RawMessage(`{"type":"object","$defs":{"x":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"]}`)}}, call("5")},
		"circle":              {[]Tool{{Name: "fetch_it", Input: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`)}}, ""},
		"prototype":           {[]Tool{{Name: "fetch_it", Input: object(`"__proto__":{"type":"string"}`, `"__proto__"`)}}, ""},
		"what is not known":   {one(`{"type":"string","not":{"const":"value"}}`), ""},
		"no schema":           {[]Tool{{Name: "fetch_it", Input: json.RawMessage(`true`)}}, ""},
		"many members":        {[]Tool{{Name: "fetch_it", Input: object(strings.TrimSuffix(strings.Repeat(`"a":{"type":"string"},`, 40), ","), `"a"`)}}, call(`"value"`)},
	} {
		if got := exampleCalls(row.tools); got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, row.want)
		}
		if text := Prompt(row.tools, Options{}); strings.Contains(text, "\nExample:") != (row.want != "") {
			t.Errorf("%s: the prompt is\n%s", name, text)
		}
	}
	// Fits decides with the full schema.
	hard := one(`{"type":"string","examples":["one","two"]}`)
	hard[0].Fits = func(arguments json.RawMessage) bool { return string(arguments) == `{"a":"one"}` }
	if got := exampleCalls(hard); got != call(`"one"`) {
		t.Errorf("a value that fits: %q", got)
	}
	hard[0].Fits = func(json.RawMessage) bool { return false }
	if got := exampleCalls(hard); got != "" {
		t.Errorf("a value that does not fit: %q", got)
	}
}

func TestPrompt_exampleIsBounded(t *testing.T) {
	for _, tools := range [][]Tool{hostileCatalog(), catalogOf(500)} {
		text := exampleCalls(tools)
		if len(text) > maxExamples*(maxCall+40) {
			t.Errorf("the example has %d bytes", len(text))
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "const ") && line != "\n" && line != "Example:\n" {
				t.Errorf("a line is %q", line)
			}
		}
		if tools := slices.Clone(tools); true {
			slices.Reverse(tools)
			if got := exampleCalls(tools); got != text {
				t.Errorf("the example depends on the order of tools:\n%s\n%s", text, got)
			}
		}
	}
}

func truth(b bool) *bool { return &b }

// smallCatalog has a tool for each kind of name, and most schema keywords.
func smallCatalog() []Tool {
	return []Tool{
		{
			Name: "search_web", Title: "Web search", Description: "Search the web for information. Returns the best pages first.\n\nUse few words, such as those of a heading.",
			Input: json.RawMessage(`{"type":"object","properties":{
				"query":{"type":"string","description":"What to look for","minLength":1,"maxLength":200},
				"max_results":{"type":"integer","minimum":1,"maximum":50,"default":10},
				"site":{"anyOf":[{"type":"string","format":"hostname"},{"type":"null"}],"default":null},
				"kinds":{"type":"array","items":{"enum":["page","image","video"]},"uniqueItems":true,"description":"Only these"}},
				"required":["query"]}`),
			Output: json.RawMessage(`{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{
				"title":{"type":"string"},"url":{"type":"string","format":"uri"},"score":{"type":"number","description":"From 0 to 1"}},"required":["title","url"]}}},"required":["results"]}`),
			ReadOnly: truth(true),
		},
		{
			Name: "read_file", Description: "Read contents of a file",
			Input:    json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`),
			ReadOnly: truth(true),
		},
		{
			Name: "crm_get_customer", Group: "crm", Member: "get_customer", Description: "Returns a customer by id.",
			Input: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","pattern":"^c_[0-9]+$"}},"required":["id"]}`),
			Output: json.RawMessage(`{"$defs":{"Address":{"type":"object","description":"Where somebody lives","properties":{"street":{"type":"string"},"country":{"enum":["DE","FR",null]}},"required":["street"]},
				"Person":{"type":"object","properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/Address"},"friends":{"type":"array","items":{"$ref":"#/$defs/Person"}}},"required":["name"]}},
				"$ref":"#/$defs/Person"}`),
		},
		{
			Name: "crm_delete-customer", Group: "crm", Member: "delete-customer",
			Input:       json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"because":{"const":"asked"}},"required":["id"]}`),
			Destructive: truth(true),
		},
		{Name: "weather.now", Description: "Tells the weather of now.", Input: json.RawMessage(`{"type":"object","properties":{}}`), Output: json.RawMessage(`{"type":"object","properties":{"at":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":false},"readings":{"type":"object","additionalProperties":{"type":"number"}}}}`)},
	}
}
