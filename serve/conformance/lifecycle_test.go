package conformance_test

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var lifecycleScenarios = []scenario{
	{"server-initialize", legacyOnly, initializes},
	{"server-stateless", modernOnly, stateless},
	{"server-sse-multiple-streams", both, severalAtOnce},
	{"ping", legacyOnly, func(v *visit) { v.same("the result", v.connect().get("ping", nil), `{}`) }},
	{"logging-set-level", legacyOnly, func(v *visit) {
		v.same("the result", v.connect().get("logging/setLevel", object{"level": "info"}), `{}`)
	}},
	{"caching", modernOnly, caching},
	{"completion-complete", both, completes},
}

// initializes has every revision negotiated, and one that there never was.
func initializes(v *visit) {
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05", "1999-12-31": "2025-11-25",
	} {
		result := v.bare().initialize(asked)
		if result["protocolVersion"] != want {
			v.Errorf("who asks for %s gets %s", asked, result["protocolVersion"])
		}
	}
	said := v.session(nil).InitializeResult()
	if said.ServerInfo.Name != "mcpd-conformance" || said.ServerInfo.Version == "" || said.Instructions == "" {
		v.Errorf("the server is %+v", said)
	}
	v.same("what the server can do", said.Capabilities, `{
		"completions": {}, "logging": {}, "prompts": {"listChanged": true},
		"resources": {"listChanged": true, "subscribe": true}, "tools": {"listChanged": true}
	}`)
}

// severalAtOnce sends three requests before it looks at any answer.
func severalAtOnce(v *visit) {
	c := v.connect()
	ids := []int{c.start("tools/list", nil), c.start("tools/list", nil), c.start("tools/list", nil)}
	slices.Reverse(ids)
	for _, id := range ids {
		if tools, _ := c.result(c.await(id))["tools"].([]any); len(tools) == 0 {
			v.Error("there are no tools")
		}
	}
}

// caching looks at how long each kind of result may be kept, and by whom.
func caching(v *visit) {
	c := v.connect()
	first := c.get("resources/list", nil)["resources"].([]any)[0].(object)["uri"]
	for method, params := range map[string]object{
		"tools/list": nil, "prompts/list": nil, "resources/list": nil, "resources/templates/list": nil, "resources/read": {"uri": first},
	} {
		result := c.get(method, params)
		if ms, ok := result["ttlMs"].(float64); !ok || ms < 0 || ms != float64(int64(ms)) {
			v.Errorf("%s may be kept for %v ms", method, result["ttlMs"])
		}
		if scope := result["cacheScope"]; scope != "public" && scope != "private" {
			v.Errorf("%s may be kept by %v", method, scope)
		}
	}
}

// completes completes an argument of a prompt, and a variable of a template.
func completes(v *visit) {
	session := v.session(nil)
	for _, test := range []struct {
		ref             mcp.CompleteReference
		argument, value string
		want            string
	}{
		{mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"}, "arg1", "test", `["testValue1"]`},
		{mcp.CompleteReference{Type: "ref/resource", URI: "test://template/{id}/data"}, "id", "", `["123","456"]`},
	} {
		got, err := session.Complete(v.ctx, &mcp.CompleteParams{
			Ref: &test.ref, Argument: mcp.CompleteParamsArgument{Name: test.argument, Value: test.value},
		})
		if err != nil {
			v.Fatal(err)
		}
		v.same("the completion of "+test.argument, got.Completion.Values, test.want)
	}
}
