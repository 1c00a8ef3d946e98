package mcptest

// Request is a request of one method, as a client in good order sends it.
type Request struct {
	Method string
	// Legacy and Modern say which revisions have the method.
	Legacy, Modern bool
	// Early says that legacy clients send it before they have a session.
	Early bool
	// Name is what the header Mcp-Name of a modern request says; empty for none.
	Name string
	// Params are the members of its params but _meta, without the braces.
	Params string
}

// Requests returns one request of every method that there is, so that what must hold
// for all methods is tested for each. They name a tool "open", a resource
// "test://open", a prompt "open" with an argument "a", and a task "none".
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
