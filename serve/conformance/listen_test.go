package conformance_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var listenScenarios = []scenario{
	{"a legacy client hears of lists that change", legacyOnly, hearsOfLists},
	{"the official client hears of lists that change", both, clientHearsOfLists},
	{"a subscription hears of a resource that changes", modernOnly, hearsOfResource},
}

// listens is the part of the scenario server-stateless that is about
// subscriptions: two of one client, each of which is told of what it asked for.
func listens(v *visit) {
	c := v.connect()
	tools, prompts := c.subscribe(object{"toolsListChanged": true}, nil), c.subscribe(object{"promptsListChanged": true}, nil)
	c.call("test_trigger_tool_change", nil)
	c.call("test_trigger_prompt_change", nil)
	for c.told("notifications/tools/list_changed") == nil || c.told("notifications/prompts/list_changed") == nil {
		c.read()
	}
	for _, told := range c.told("notifications/tools/list_changed") {
		v.same("the subscription that hears of tools", told["_meta"], tools)
	}
	for _, told := range c.told("notifications/prompts/list_changed") {
		v.same("the subscription that hears of prompts", told["_meta"], prompts)
	}
}

// subscribe opens a subscription, which is acknowledged before all else, and
// returns what stands in _meta of all that is told on it.
func (c *conn) subscribe(to, meta object) string {
	c.Helper()
	id := c.start("subscriptions/listen", object{"notifications": to, "_meta": meta})
	c.read()
	last := c.heard[len(c.heard)-1]
	acknowledged := c.params(last)
	tag, _ := acknowledged["_meta"].(object)
	if last.Method != "notifications/subscriptions/acknowledged" || tag[metaSubscription] != float64(id) {
		c.Fatalf("at first the client is told %s %s", last.Method, last.Params)
	}
	return fmt.Sprintf(`{%q: %d}`, metaSubscription, id)
}

func hearsOfLists(v *visit) {
	c := v.connect()
	v.connect().call("test_trigger_tool_change", nil)
	v.same("the params", c.hear("notifications/tools/list_changed"), `{}`)
	v.connect().call("test_trigger_prompt_change", nil)
	v.same("the params", c.hear("notifications/prompts/list_changed"), `{}`)
}

// clientHearsOfLists changes the lists until the client hears of it: in the
// modern era it subscribes in its own time.
func clientHearsOfLists(v *visit) {
	tools, prompts := make(chan struct{}, 1), make(chan struct{}, 1)
	ring := func(bell chan struct{}) {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
	session := v.session(&mcp.ClientOptions{
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { ring(tools) },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { ring(prompts) },
	})
	for tool, bell := range map[string]chan struct{}{"test_trigger_tool_change": tools, "test_trigger_prompt_change": prompts} {
		for heard := false; !heard; {
			if _, err := session.CallTool(v.ctx, &mcp.CallToolParams{Name: tool}); err != nil {
				v.Fatal(err)
			}
			select {
			case <-bell:
				heard = true
			default:
			}
		}
	}
}

func hearsOfResource(v *visit) {
	c := v.connect()
	meta := c.subscribe(object{"resourceSubscriptions": []string{watched}}, nil)
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	v.same("the notification", c.hear("notifications/resources/updated"), `{"uri": "`+watched+`", "_meta": `+meta+`}`)
}
