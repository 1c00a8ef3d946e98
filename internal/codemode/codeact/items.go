// Package codeact lets agents write code that calls tools as functions.
//
// [Items] are the items of the codeact block in mcpd.hcl: the tool run_code, which runs a
// program of the agent (package scripting, [scripting.Code]); the prompt code_mode, which
// explains how to write one and declares the tools (package toolprompt); and for large catalogs
// search_tools, describe_tool and call_tool.
//
// A program has no privileges except the tools that its caller may call. Each call runs through
// the full pipeline as a call of that caller, with call.via == "code": schema, policies,
// limits, hooks and audit log apply. In mode "plan" read-only calls run, other calls are listed
// and not made, and there are no input requests.
//
// A run is limited in time, calls, concurrent calls, output, result and memory. However it
// ends, its caller gets the printed text and the list of calls.
package codeact

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

// The names of the items.
const (
	RunCode      = "run_code"
	SearchTools  = "search_tools"
	DescribeTool = "describe_tool"
	CallTool     = "call_tool"
	CodeMode     = "code_mode"
)

// Items returns the items of a codeact block. Programs run in x; if x is nil, none can run.
// trial and t are as in [scripting.Source].
func Items(block *definition.Codeact, x scripting.Executor, trial func(scripting.Source) error, t scripting.Transpiler) []*catalog.Item {
	b := &itemBuilder{block: block, kit: &kit{block: block, compileSlots: make(chan struct{}, maxCompiles)}}
	b.tool(RunCode, runCode, runInput, runOutput, nil, &runCodeHandler{kit: b.kit, executor: x, trial: trial, transpiler: t})
	if block.Search {
		yes := true
		b.tool(SearchTools, searchTools, searchInput, searchOutput, &yes, &searchHandler{b.kit})
		b.tool(DescribeTool, describeTool, describeInput, "", &yes, &describeHandler{b.kit})
		b.tool(CallTool, callTool, callInput, "", nil, callToolHandler{}).Alias = true
	}
	b.prompt()
	return b.items
}

// The tool descriptions.
const (
	runCode = "Runs JavaScript that calls tools as functions: await tool_name({ argument: value }). " +
		"It returns the value of the last expression or of return, and the output of console.log. " +
		"Write one program for several steps: loop, filter and join results in code, and return only what you need. " +
		"parallel([a({ … }), b({ … })]) makes calls at once. A call that fails throws an error with a code and a message. " +
		"There are no modules. Only tools reach the network and files. " +
		"In mode \"plan\", read-only tools run, and calls that would change something are listed and not made; " +
		"in mode \"approve\", the user approves that plan before the program runs. " +
		"The prompt code_mode declares the tools in TypeScript."
	searchTools  = "Finds tools by words. Returns names and descriptions of the best matches. describe_tool returns the details of one tool."
	describeTool = "Returns the declaration of one tool in TypeScript, with the description of each argument."
	callTool     = "Calls a tool by its name with an object of arguments, like a direct call."
)

// The schemas of arguments and results.
const (
	runInput = `{"type":"object","properties":{` +
		`"code":{"type":"string","minLength":1,"description":"The program, in JavaScript or TypeScript, without imports."},` +
		`"mode":{"type":"string","enum":["run","plan","approve"],"default":"run","description":"plan lists the calls that would change something, and does not make them. approve asks the user to approve all calls that need approval at once, before the program runs."}` +
		`},"required":["code"],"additionalProperties":false}`
	runOutput = `{"type":"object","properties":{` +
		`"result":{"description":"The result of the program. Absent if it returned nothing."},` +
		`"stdout":{"type":"string","description":"The output of the program."},` +
		`"calls":{"type":"array","description":"The tool calls of the program, in order.","items":{"type":"object","properties":{` +
		`"tool":{"type":"string"},"outcome":{"type":"string","description":"ok, the code of an error, or in mode plan dry_run or planned."},` +
		`"arguments":{"description":"In mode plan, the arguments of a call that was not made."},"approval":{"type":"boolean","description":"In mode plan, whether a user has to approve the call."}` +
		`},"required":["tool","outcome"]}},` +
		`"notes":{"type":"array","items":{"type":"string"},"description":"Changes to the program before it ran, such as removed imports."}` +
		`},"required":["stdout","calls"]}`
	searchInput = `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"Words that describe the task of a tool."},` +
		`"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}` +
		`},"required":["query"],"additionalProperties":false}`
	searchOutput = `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object","properties":{` +
		`"name":{"type":"string"},"call":{"type":"string","description":"How code calls it."},"description":{"type":"string"}` +
		`},"required":["name","call"]}}},"required":["tools"]}`
	describeInput = `{"type":"object","properties":{"name":{"type":"string","description":"The name of a tool, from search_tools."}},"required":["name"],"additionalProperties":false}`
	callInput     = `{"type":"object","properties":{` +
		`"name":{"type":"string","minLength":1,"description":"The name of a tool, from search_tools."},` +
		`"arguments":{"type":"object","description":"The arguments of the tool, from describe_tool."}` +
		`},"required":["name"],"additionalProperties":false}`
)

type itemBuilder struct {
	block *definition.Codeact
	kit   *kit
	items []*catalog.Item
}

// tool adds a tool. readOnly is nil if the tool may change something.
func (b *itemBuilder) tool(name, description, input, output string, readOnly *bool, body catalog.Handler) *catalog.Item {
	i := b.item(catalog.Tools, name, description)
	i.ReadOnly, i.Idempotent = readOnly, readOnly != nil
	i.Input, i.PolicySchema = mustCompile(input), json.RawMessage(input)
	if output != "" {
		i.Output = mustCompile(output)
	}
	i.Handler = body
	i.Finalize()
	i.Key = b.key(name)
	return i
}

// item adds an item with the members that tools and prompts share.
func (b *itemBuilder) item(kind catalog.Kind, name, description string) *catalog.Item {
	i := &catalog.Item{
		Kind: kind, Name: name, Address: name, Where: b.block.Range,
		About: catalog.About{Description: &description, Labels: b.block.Labels},
		Allowance: catalog.Allowance{
			Timeout: b.block.Timeout, AskTimeout: b.block.AskTimeout, Concurrency: b.block.Concurrency,
			Bounds: scripting.Limits{Memory: b.block.Memory, Output: int(b.block.Output), Stdout: b.block.MaxStdout},
		},
		Behavior: catalog.Behavior{CallsAllTools: true},
	}
	b.items = append(b.items, i)
	return i
}

func (b *itemBuilder) key(name string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "codeact %s %x", name, b.block.Semantic))
}

func (b *itemBuilder) prompt() {
	i := b.item(catalog.Prompts, CodeMode, "How to write code that calls the tools of this server, with their declarations.")
	const input = `{"type":"object","properties":{"budget":{"type":"string","description":"The maximum number of tokens of the prompt. Details are left out to fit, but no tool."}},"additionalProperties":false}`
	yes, no := true, false
	i.ReadOnly, i.Destructive, i.Idempotent = &yes, &no, true
	i.Input, i.PolicySchema, i.InputNames = mustCompile(input), json.RawMessage(input), []string{"budget"}
	i.Offer = &catalog.Offer{ListedAs: CodeMode, Size: -1, Arguments: []catalog.Argument{
		catalog.NewArgument("budget", "", "The maximum number of tokens of the prompt. Details are left out to fit, but no tool.", false, nil),
	}}
	i.Handler = &codeModeHandler{b.kit}
	i.Finalize()
	i.Key = b.key(CodeMode)
}

func mustCompile(text string) *schema.Schema {
	s, _ := schema.CompileFor(schema.Reader{Numbers: schema.ForText}, json.RawMessage(text), diag.Range{}, nil)
	return s
}
