package mcptest

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/mcp"
)

// One block of each type, and the two that older revisions lack.
const (
	soundBlock = `{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1}}`
	linkBlock  = `{"type":"resource_link","uri":"file:///a.csv","name":"a.csv","description":"All rows."}`
	allBlocks  = `[{"type":"text","text":"audio"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},` +
		`{"type":"resource","resource":{"uri":"test://readme","text":"Hello."}},` + soundBlock + `,` + linkBlock + `]`
)

// Blocks returns tools that return a block of each type, and that have a sound described.
func Blocks() []Tool {
	sound := mcp.AskRequest{Key: "sound", Method: "sampling/createMessage", Params: json.RawMessage(
		`{"messages":[{"role":"user","content":` + soundBlock + `},{"role":"user","content":{"type":"text","text":"What is it?"}}],"maxTokens":100}`)}
	all := func(context.Context, mcp.Request) mcp.Response {
		return mcp.Response{Value: json.RawMessage("null"), Rich: true, Content: json.RawMessage(allBlocks)}
	}
	return []Tool{{ToolInfo: describe("blocks", noInput), Run: all}, {ToolInfo: describe("listen", noInput), Run: asks(sound)}}
}

// BlockItems returns a prompt that holds a sound and a link.
func BlockItems() []Item {
	prompt := func(context.Context, mcp.Request) mcp.Response {
		return mcp.Response{Result: json.RawMessage(
			`{"description":"All.","messages":[{"role":"user","content":` + soundBlock + `},{"role":"assistant","content":` + linkBlock + `}]}`)}
	}
	return []Item{{Kind: mcp.Prompts, Entry: must(mcp.NewPrompt(mcp.PromptInfo{Name: "blocks"})), Run: prompt}}
}
