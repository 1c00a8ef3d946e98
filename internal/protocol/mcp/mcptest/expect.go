package mcptest

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Expected describes the correct reply to a text, as computed with
// encoding/json. Tests compare the results of the JSON guard and the server
// with it.
type Expected struct {
	// Reply is true if there is a reply.
	Reply bool
	// ID is the JSON of its id; empty if it has none.
	ID string
	// Error means that the reply is an error, and Ping that it is not. With
	// neither, it may be either.
	Error, Ping bool
	// BadParams is true if only transports that answer each text send the reply,
	// because the text is a notification or a response.
	BadParams bool
}

var goodID = regexp.MustCompile(`^("|-?[0-9]+$)`)

// maxID is the maximum length of an id in bytes.
const maxID = 1 << 10

// Expect returns the correct reply to a text of a client without a session.
// passes is true if the text passes the JSON guard.
func Expect(text []byte, passes bool) Expected {
	var m map[string]json.RawMessage
	if !passes || json.Unmarshal(text, &m) != nil || m == nil {
		return Expected{Reply: true, Error: true}
	}
	_, isRequest := m["method"]
	isResponse := !isRequest && (m["result"] != nil || m["error"] != nil)
	id := strings.TrimSpace(string(m["id"]))
	badID := id != "" && (len(id) > maxID || !goodID.MatchString(id))
	if badID {
		id = ""
	}
	switch {
	case stringOf(m["jsonrpc"]) != "2.0", badID && !isResponse:
		return Expected{Reply: true, ID: id, Error: true}
	case isResponse:
		return Expected{Reply: true, Error: true, BadParams: true}
	case stringOf(m["method"]) == "", !isParams(m["params"]):
		return Expected{Reply: true, ID: id, Error: true, BadParams: id == "" && stringOf(m["method"]) != ""}
	}
	params := string(m["params"])
	isPing := stringOf(m["method"]) == "ping" && (params == "" || params == "null" || params == "{}")
	return Expected{Reply: id != "", ID: id, Ping: id != "" && isPing}
}

// stringOf returns the value of a JSON string; empty for any other value.
func stringOf(value json.RawMessage) string {
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// isParams reports whether a member can be the params of a request.
func isParams(value json.RawMessage) bool {
	return len(value) == 0 || string(value) == "null" || value[0] == '{'
}

// Replies returns the replies among the messages of a server: the messages with
// an id and the errors.
func Replies(texts []string) (replies []Reply, ok bool) {
	for _, text := range texts {
		var m struct {
			JSONRPC string
			ID      json.RawMessage
			Method  string
			Error   json.RawMessage
		}
		if json.Unmarshal([]byte(text), &m) != nil || m.JSONRPC != "2.0" {
			return nil, false
		}
		if m.Method == "" {
			replies = append(replies, Reply{ID: string(m.ID), Error: m.Error != nil})
		}
	}
	return replies, true
}

// Reply is the id and the kind of a server's reply.
type Reply struct {
	ID    string
	Error bool
}

// Fits reports whether r is an expected reply.
func (e Expected) Fits(r Reply) bool {
	return e.Reply && e.ID == r.ID && (r.Error || !e.Error) && (!r.Error || !e.Ping)
}

// FuzzSeeds returns seed texts for fuzzing: messages of every kind, truncated
// and doubled texts, and texts that parsers read differently.
func FuzzSeeds() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, ` { "jsonrpc" : "2.0" , "id" : "a\u0062" , "m\u0065thod" : "ping" , "params" : null } `,
		`{"jsonrpc":"2\u002e0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":{},"error":null}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","ID":1,"Method":"ping"}`, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[]`, `{"jsonrpc":"2.0","id":1,`, `{}{}`, "\"\xff\"", `{"id":"` + "\xc3" + `"}`, `null`, `"ping"`, "\x00",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"hello","_meta":{"io.modelcontextprotocol/protocolVersion":` +
			`"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		strings.Repeat("[", 40), `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`,
	}
}

// Request is a valid request of one method.
type Request struct {
	Method string
	// Legacy and Modern are true if these revisions have the method.
	Legacy, Modern bool
	// Early is true if legacy clients send it before they have a session.
	Early bool
	// Name is the header Mcp-Name of a modern request; empty for none.
	Name string
	// Params are the members of params without _meta, without the braces.
	Params string
}

// Requests returns one request of each method, so that tests of all methods
// cover each. They name a tool "open", a resource "test://open", a prompt
// "open" with an argument "a", and a task "none".
func Requests() []Request {
	const uri, task = `"uri":"test://open"`, `"taskId":"none"`
	return []Request{
		{Method: "initialize", Legacy: true, Early: true, Params: `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`},
		{Method: "ping", Legacy: true, Early: true},
		{Method: "shutdown", Legacy: true},
		{Method: "server/discover", Modern: true},
		{Method: "tools/list", Legacy: true, Modern: true},
		{Method: "tools/call", Legacy: true, Modern: true, Name: "open", Params: `"name":"open","arguments":{}`},
		{Method: "resources/list", Legacy: true, Modern: true},
		{Method: "resources/templates/list", Legacy: true, Modern: true},
		{Method: "resources/read", Legacy: true, Modern: true, Name: "test://open", Params: uri},
		{Method: "resources/subscribe", Legacy: true, Params: uri},
		{Method: "resources/unsubscribe", Legacy: true, Params: uri},
		{Method: "prompts/list", Legacy: true, Modern: true},
		{Method: "prompts/get", Legacy: true, Modern: true, Name: "open", Params: `"name":"open","arguments":{"a":"x"}`},
		{Method: "completion/complete", Legacy: true, Modern: true, Params: `"ref":{"type":"ref/prompt","name":"open"},"argument":{"name":"a","value":""}`},
		{Method: "logging/setLevel", Legacy: true, Params: `"level":"info"`},
		{Method: "subscriptions/listen", Modern: true, Params: `"notifications":{"toolsListChanged":true}`},
		{Method: "tasks/get", Modern: true, Name: "none", Params: task},
		{Method: "tasks/update", Modern: true, Name: "none", Params: task + `,"inputResponses":{}`},
		{Method: "tasks/cancel", Modern: true, Name: "none", Params: task},
	}
}
