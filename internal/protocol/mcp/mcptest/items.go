package mcptest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Items returns what the transcripts read, get and complete: resources that
// are text, binary, hidden or broken, a template, and prompts with and without
// arguments.
func Items() []Item {
	return []Item{
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources,
			Address: "test://readme", Name: "readme", Title: "Read me", Description: "What to know first.", MIMEType: "text/plain", Size: 6,
			Icons:       []mcp.Icon{{Source: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: "dark"}},
			Annotations: json.RawMessage("{\n\"priority\": 1}"),
		})), Run: contents(`"mimeType":"text/plain","text":"Hello."`)},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://logo", Name: "logo", MIMEType: "image/png", Size: -1})),
			Run: contents(`"mimeType":"image/png","blob":"iVBORw0KGgo="`)},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://broken", Name: "broken", Size: -1})), Run: fail},
		{Kind: call.Resources, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Resources, Address: "test://secret", Name: "secret", Size: -1})),
			Run: contents(`"text":"hidden"`), Visible: insider},
		{Kind: call.Templates, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Templates,
			Address: "test://users/{id}", Name: "user", Title: "A user", Description: "One user.", MIMEType: "application/json",
		})), Run: user},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "plain", Description: "Says hello."})), Run: plain},
		{Kind: call.Prompts, Entry: must(mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts,
			Address: "greet", Title: "Greeting", Description: "Greets somebody.",
			Arguments: []mcp.Argument{{Name: "who", Title: "Who", Description: "Whom to greet.", Required: true}, {Name: "how"}},
			Icons:     []mcp.Icon{{Source: "data:image/png;base64,iVBORw0KGgo="}},
		})), Run: greet},
	}
}

// insider reports whether the caller may see what is hidden.
func insider(c identity.Caller) bool { return c.Agent.AgentID == "insider" }

func must(e *mcp.Entry, err error) *mcp.Entry {
	if err != nil {
		panic(err)
	}
	return e
}

// contents returns a resource with one content, whose members are given.
func contents(members string) Run {
	return func(_ context.Context, r call.Request) call.Result {
		uri, err := json.Marshal(r.Name)
		if err != nil {
			panic(err)
		}
		return call.Result{
			Reply: json.RawMessage(`{"contents":[{"uri":` + string(uri) + `,` + members + `}]}`),
			TTL:   time.Minute, Public: r.Name != "test://secret",
		}
	}
}

// user is a template: it suggests ids, and reads users by id.
func user(_ context.Context, r call.Request) call.Result {
	if r.Argument == "" {
		return call.Result{Reply: json.RawMessage(`{"contents":[{"uri":"` + r.Name + `","text":"user"}]}`)}
	}
	return call.Result{Reply: json.RawMessage(`{"completion":{"values":["1","12"],"total":2,"hasMore":false}}`)}
}

func plain(context.Context, call.Request) call.Result { return messages("Hello.") }

// greet suggests what is told to it, and refuses to greet nobody.
func greet(_ context.Context, r call.Request) call.Result {
	if r.Argument != "" {
		values, err := json.Marshal([]string{r.Argument + ":" + string(r.Arguments)})
		if err != nil {
			panic(err)
		}
		return call.Result{Reply: json.RawMessage(`{"completion":{"values":` + string(values) + `}}`)}
	}
	var in struct{ Who string }
	if json.Unmarshal(r.Arguments, &in) != nil || in.Who == "" {
		return call.Result{Err: &call.Error{
			Code: call.InvalidInput, Message: "the arguments do not fit the prompt",
			Violations: []call.Violation{{Message: "who is missing"}},
		}}
	}
	return messages("Hello, " + strings.ToUpper(in.Who) + ".")
}

func messages(text string) call.Result {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return call.Result{Reply: json.RawMessage(
		`{"messages":[{"role":"user","content":{"type":"text","text":` + string(quoted) + `}}]}`)}
}
