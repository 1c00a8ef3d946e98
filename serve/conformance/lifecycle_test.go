package conformance_test

import (
	"maps"
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

// stateless is the scenario of that name, as far as it is not about HTTP.
func stateless(v *visit) {
	c := v.connect()
	metaIsNeeded(v, c)
	discovered := c.get("server/discover", nil)
	discovers(v, c, discovered)
	versionsAreTold(v, c, discovered)
	capabilitiesAreNeeded(v, c)
	oldMethodsAreGone(v, c)
	nothingIsAskedFor(v, c)
	listens(v)
}

// metaIsNeeded leaves out what must stand in each request, and what need not.
func metaIsNeeded(v *visit, c *conn) {
	whole := object{metaVersion: modern, metaClient: object{"name": "wire", "version": "1"}, metaCapabilities: object{}}
	without := func(name string) object {
		meta := maps.Clone(whole)
		delete(meta, name)
		return object{"_meta": meta}
	}
	for what, params := range map[string]object{
		"_meta": {}, "the version": without(metaVersion), "the capabilities": without(metaCapabilities),
	} {
		if m := c.await(c.post("server/discover", params)); m.Error == nil || m.Error.Code != -32602 {
			v.Errorf("without %s the answer is %s, %v", what, m.Result, m.Error)
		}
	}
	c.result(c.await(c.post("server/discover", without(metaClient))))
}

// discovers has the server say what it is, and do what it says.
func discovers(v *visit, c *conn, result object) {
	if versions, _ := result["supportedVersions"].([]any); !slices.Contains(versions, any(string(modern))) {
		v.Errorf("the versions are %v", result["supportedVersions"])
	}
	v.same("what the server can do", result["capabilities"], `{
		"completions": {}, "logging": {}, "prompts": {"listChanged": true},
		"resources": {"listChanged": true, "subscribe": true}, "tools": {"listChanged": true},
		"extensions": {"io.modelcontextprotocol/tasks": {}}
	}`)
	meta, _ := result["_meta"].(object)
	if server, _ := meta[metaServer].(object); server["name"] != "mcpd-conformance" || server["version"] == "" {
		v.Errorf("the server is %v", meta)
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list"} {
		c.get(method, nil)
	}
}

// versionsAreTold asks for a version that there is not.
func versionsAreTold(v *visit, c *conn, discovered object) {
	f := c.refused("server/discover", object{"_meta": object{metaVersion: "v999.0.0"}})
	data := decoded(v.T, string(f.Data)).(object)
	supported, _ := data["supported"].([]any)
	for _, version := range supported {
		if !slices.Contains(discovered["supportedVersions"].([]any), version) {
			v.Errorf("%v is supported, and was not discovered", version)
		}
	}
	if f.Code != -32022 || len(supported) == 0 || data["requested"] != "v999.0.0" {
		v.Errorf("the error is %d %s", f.Code, f.Data)
	}
}

// capabilitiesAreNeeded calls a tool that needs what the client cannot do.
func capabilitiesAreNeeded(v *visit, c *conn) {
	f := c.refused("tools/call", object{"name": "test_missing_capability", "_meta": object{metaCapabilities: object{}}})
	if f.Code != -32021 {
		v.Errorf("the code is %d", f.Code)
	}
	v.same("the data", f.Data, `{"requiredCapabilities": {"sampling": {}}}`)
}

// oldMethodsAreGone asks for what the revision has not any more, and for what
// there never was.
func oldMethodsAreGone(v *visit, c *conn) {
	for _, method := range []string{
		"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method",
	} {
		if f := c.refused(method, nil); f.Code != -32601 {
			v.Errorf("%s is refused with %d %s", method, f.Code, f.Message)
		}
	}
}

// nothingIsAskedFor calls a tool of a client that could be asked, and one that
// logs for a client that wants no log. That no request was sent to the client
// is what read looks at.
func nothingIsAskedFor(v *visit, c *conn) {
	result := c.call("test_streaming_elicitation", object{"_meta": object{metaCapabilities: object{"elicitation": object{}}, "progressToken": "p"}})
	v.same("the content", result["content"], `[{"type": "text", "text": "nothing to ask"}]`)
	if told := c.told("notifications/progress"); len(told) != 1 {
		v.Errorf("the progress is %v", told)
	}
	c.call("test_logging_tool", nil)
	if told := c.told("notifications/message"); told != nil {
		v.Errorf("the client was told %v", told)
	}
}
