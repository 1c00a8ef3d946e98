package scripting

import (
	"strings"
	"testing"
)

// TestEveryUseOfAToolHasItsResult: what a client's model is told of tools is
// whole, or the script hears what is missing.
func TestEveryUseOfAToolHasItsResult(t *testing.T) {
	const (
		ask     = `{ role: "user", content: "a" }`
		use     = `{ role: "assistant", content: [{ type: "text", text: "b" }, { type: "tool_use", id: "1", name: "t", input: {} }, { type: "tool_use", id: "2", name: "t", input: {} }] }`
		results = `{ role: "user", content: [{ type: "tool_result", toolUseId: "2", content: [] }, { type: "tool_result", toolUseId: "1", content: [] }] }`
		one     = `{ role: "assistant", content: { type: "tool_use", id: "1", name: "t", input: {} } }`
		result  = `{ role: "user", content: { type: "tool_result", toolUseId: "1", content: [] } }`
	)
	for _, c := range []struct{ messages, want string }{
		{ask, ""},
		{ask + "," + use + "," + results, ""},
		{ask + "," + one + "," + result + "," + one + "," + result, ""},
		{`{ role: "user", content: "\"tool_use\"" }`, ""},
		{one, "messages: the last tool_use needs its tool_result in a message after it"},
		{one + "," + ask, "messages[1]: each tool_use in the message before needs its tool_result here"},
		{use + "," + result, "messages[1]: each tool_use in the message before needs its tool_result here"},
		{ask + "," + result, "messages[1]: each tool_result needs the toolUseId of a tool_use in the message before, once"},
		{one + "," + results, "messages[1]: each tool_result needs the toolUseId of a tool_use in the message before, once"},
		{one + `,{ role: "user", content: [{ type: "tool_result", toolUseId: "1", content: [] }, { type: "text", text: "b" }] }`, "messages[1]: a message with a tool_result is of the user and holds nothing else"},
		{one + "," + strings.Replace(result, "user", "assistant", 1), "messages[1]: a message with a tool_result is of the user and holds nothing else"},
		{strings.Replace(one, "assistant", "user", 1) + "," + result, "messages[0]: a tool_use is of the assistant"},
		{strings.Replace(use, `"2"`, `"1"`, 1) + "," + result, "messages[0]: each tool_use needs an id of its own"},
		{strings.Replace(one, `"1"`, `1`, 1) + "," + result, "messages: the id of a tool_use and the toolUseId of a tool_result must be strings"},
	} {
		body := `try { await sample({ messages: [` + c.messages + `], tools: [{ name: "t", inputSchema: { type: "object" } }] }); return "" } catch (e) { return e.message }`
		want := c.want
		if want != "" {
			want = "sample: " + want
		}
		if got := shown(runWith(t, call(compiled(t, asker(body)), `{}`), askingHost(t, willing))); got != string(mustJSONText(want)) {
			t.Errorf("%s: %s, want %s", c.messages, got, want)
		}
	}
}
