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
	{"ping", legacyOnly, func(v *visit) { v.same("result", v.connect().get("ping", nil), `{}`) }},
	{"logging-set-level", legacyOnly, func(v *visit) {
		v.same("result", v.connect().get("logging/setLevel", object{"level": "info"}), `{}`)
	}},
	{"caching", modernOnly, caching},
	{"completion-complete", both, completes},
}

// initializes negotiates every revision, and an unknown one.
func initializes(v *visit) {
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05", "1999-12-31": "2025-11-25",
	} {
		result := v.bare().initialize(asked)
		if result["protocolVersion"] != want {
			v.Errorf("protocol version for %s: %s", asked, result["protocolVersion"])
		}
	}
	output := v.session(nil).InitializeResult()
	if output.ServerInfo.Name != "mcpd-conformance" || output.ServerInfo.Version == "" || output.Instructions == "" {
		v.Errorf("server info: %+v", output)
	}
	v.same("capabilities", output.Capabilities, `{
		"completions": {}, "logging": {}, "prompts": {"listChanged": true},
		"resources": {"listChanged": true, "subscribe": true}, "tools": {"listChanged": true}
	}`)
}

// severalAtOnce sends three requests before it reads a response.
func severalAtOnce(v *visit) {
	c := v.connect()
	ids := []int{c.start("tools/list", nil), c.start("tools/list", nil), c.start("tools/list", nil)}
	slices.Reverse(ids)
	for _, id := range ids {
		if tools, _ := c.result(c.await(id))["tools"].([]any); len(tools) == 0 {
			v.Error("no tools")
		}
	}
}

// caching checks how long each kind of result may be cached, and by whom.
func caching(v *visit) {
	c := v.connect()
	first := c.get("resources/list", nil)["resources"].([]any)[0].(object)["uri"]
	for method, params := range map[string]object{
		"tools/list": nil, "prompts/list": nil, "resources/list": nil, "resources/templates/list": nil, "resources/read": {"uri": first},
	} {
		result := c.get(method, params)
		if ms, ok := result["ttlMs"].(float64); !ok || ms < 0 || ms != float64(int64(ms)) {
			v.Errorf("%s: ttlMs = %v", method, result["ttlMs"])
		}
		if scope := result["cacheScope"]; scope != "public" && scope != "private" {
			v.Errorf("%s: cacheScope = %v", method, scope)
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
		v.same("completion of "+test.argument, got.Completion.Values, test.want)
	}
}

// stateless is the scenario of that name, without its HTTP part.
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

// metaIsNeeded omits each required and optional member of _meta.
func metaIsNeeded(v *visit, c *conn) {
	whole := object{metaVersion: modern, metaClient: object{"name": "wire", "version": "1"}, metaCapabilities: object{}}
	without := func(name string) object {
		meta := maps.Clone(whole)
		delete(meta, name)
		return object{"_meta": meta}
	}
	for what, params := range map[string]object{
		"_meta": {}, "version": without(metaVersion), "capabilities": without(metaCapabilities),
	} {
		if m := c.await(c.post("server/discover", params)); m.Error == nil || m.Error.Code != -32602 {
			v.Errorf("without %s: %s, %v", what, m.Result, m.Error)
		}
	}
	c.result(c.await(c.post("server/discover", without(metaClient))))
}

// discovers checks the server's description of itself.
func discovers(v *visit, c *conn, result object) {
	if versions, _ := result["supportedVersions"].([]any); !slices.Contains(versions, any(string(modern))) {
		v.Errorf("supported versions: %v", result["supportedVersions"])
	}
	v.same("capabilities", result["capabilities"], `{
		"completions": {}, "logging": {}, "prompts": {"listChanged": true},
		"resources": {"listChanged": true, "subscribe": true}, "tools": {"listChanged": true},
		"extensions": {"io.modelcontextprotocol/tasks": {}}
	}`)
	meta, _ := result["_meta"].(object)
	if server, _ := meta[metaServer].(object); server["name"] != "mcpd-conformance" || server["version"] == "" {
		v.Errorf("server info: %v", meta)
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list"} {
		c.get(method, nil)
	}
}

// versionsAreTold requests an unknown version.
func versionsAreTold(v *visit, c *conn, discovered object) {
	f := c.askError("server/discover", object{"_meta": object{metaVersion: "v999.0.0"}})
	data := decoded(v.T, string(f.Data)).(object)
	supported, _ := data["supported"].([]any)
	for _, version := range supported {
		if !slices.Contains(discovered["supportedVersions"].([]any), version) {
			v.Errorf("%v is supported but not discovered", version)
		}
	}
	if f.Code != -32022 || len(supported) == 0 || data["requested"] != "v999.0.0" {
		v.Errorf("error %d %s", f.Code, f.Data)
	}
}

// capabilitiesAreNeeded calls a tool that needs a missing client capability.
func capabilitiesAreNeeded(v *visit, c *conn) {
	f := c.askError("tools/call", object{"name": "test_missing_capability", "_meta": object{metaCapabilities: object{}}})
	if f.Code != -32021 {
		v.Errorf("code %d", f.Code)
	}
	v.same("data", f.Data, `{"requiredCapabilities": {"sampling": {}}}`)
}

// oldMethodsAreGone calls methods that the revision has removed, and an unknown
// one.
func oldMethodsAreGone(v *visit, c *conn) {
	for _, method := range []string{
		"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method",
	} {
		if f := c.askError(method, nil); f.Code != -32601 {
			v.Errorf("%s: error %d %s", method, f.Code, f.Message)
		}
	}
}

// nothingIsAskedFor calls a tool that does not use the client's capabilities,
// and one that logs for a client that wants no log. read checks that the server
// sends no request.
func nothingIsAskedFor(v *visit, c *conn) {
	result := c.call("test_streaming_elicitation", object{"_meta": object{metaCapabilities: object{"elicitation": object{}}, "progressToken": "p"}})
	v.same("content", result["content"], `[{"type": "text", "text": "nothing to ask"}]`)
	if notified := c.receivedParams("notifications/progress"); len(notified) != 1 {
		v.Errorf("progress: %v", notified)
	}
	c.call("test_logging_tool", nil)
	if notified := c.receivedParams("notifications/message"); notified != nil {
		v.Errorf("notifications: %v", notified)
	}
}
