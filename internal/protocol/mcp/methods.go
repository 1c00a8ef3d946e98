package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
)

// method is one JSON-RPC method.
type method struct {
	name string
	eras era
	// early methods are served before initialize.
	early bool
	// slow methods may take long: clients can cancel them, and the connection serves
	// the next message meanwhile.
	slow bool
	// nameOf is the member of params that the header Mcp-Name mirrors; empty
	// for methods that have none.
	nameOf string
	// serve serves a request. A nil result with a nil fault sends no response:
	// the client does not wait for one any more.
	serve func(ctx context.Context, c *request) (*result, *fault)
}

// methodTable returns the methods by their names. Those of the tasks extension exist
// with a [TaskBackend] alone.
func methodTable(withTasks bool) map[string]*method {
	all := []method{
		// 2025-11-25 basic/lifecycle and basic/utilities/ping. Clients send shutdown,
		// which is not in the specification.
		{name: "initialize", eras: legacy, early: true, serve: initialize},
		{name: "ping", eras: legacy, early: true, serve: ping},
		{name: "shutdown", eras: legacy, serve: shutdown},
		{name: "server/discover", eras: modern, serve: discover},
		{name: "tools/list", eras: bothEras, serve: lister(call.Tools)},
		{name: "tools/call", eras: bothEras, slow: true, nameOf: "name", serve: callTool},
		{name: "resources/list", eras: bothEras, serve: lister(call.Resources)},
		{name: "resources/templates/list", eras: bothEras, serve: lister(call.Templates)},
		{name: "resources/read", eras: bothEras, slow: true, nameOf: "uri", serve: readResource},
		{name: "resources/subscribe", eras: legacy, serve: subscribeResource},
		{name: "resources/unsubscribe", eras: legacy, serve: unsubscribeResource},
		{name: "prompts/list", eras: bothEras, serve: lister(call.Prompts)},
		{name: "prompts/get", eras: bothEras, slow: true, nameOf: "name", serve: getPrompt},
		{name: "completion/complete", eras: bothEras, slow: true, serve: complete},
		{name: "logging/setLevel", eras: legacy, serve: setLevel},
		// 2026-07-28 basic/patterns/subscriptions.
		{name: "subscriptions/listen", eras: modern, slow: true, serve: listen},
	}
	if withTasks {
		all = append(all,
			method{name: "tasks/get", eras: modern, slow: true, nameOf: "taskId", serve: getTask},
			method{name: "tasks/update", eras: modern, slow: true, nameOf: "taskId", serve: updateTask},
			method{name: "tasks/cancel", eras: modern, slow: true, nameOf: "taskId", serve: cancelTask},
		)
	}
	table := make(map[string]*method, len(all))
	for i := range all {
		table[all[i].name] = &all[i]
	}
	return table
}

// capabilities returns the capabilities object that the server declares to clients of
// the era.
func (s *Server) capabilities(e era) string {
	const both = `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}`
	if e == modern && s.tasks != nil {
		return both + `,"extensions":{"` + keyTasks + `":{}}}`
	}
	return both + "}"
}
