package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
)

var resourceScenarios = []scenario{
	{"resources-list", both, listsResources},
	{"resources-read-text", both, reads("test://static-text", `[{
		"uri": "test://static-text", "mimeType": "text/plain", "text": "This is the content of the static text resource."}]`)},
	{"resources-read-binary", both, reads("test://static-binary", `[{"uri": "test://static-binary", "mimeType": "image/png", "blob": "`+pixel+`"}]`)},
	{"resources-templates-read", both, reads("test://template/123/data", `[{"uri": "test://template/123/data", "mimeType": "application/json",
		"text": "{\"id\":\"123\",\"templateTest\":true,\"data\":\"Data for ID: 123\"}"}]`)},
	{"resources-subscribe", legacyOnly, subscribes},
	{"resources-unsubscribe", legacyOnly, unsubscribes},
	{"sep-2164-resource-not-found", both, findsNothing},
}

// pixel is the image of the static resource, and of the prompt with an image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func listsResources(v *visit) {
	session := v.session(nil)
	resources, err := session.ListResources(v.ctx, nil)
	if err != nil {
		v.Fatal(err)
	}
	uris := map[string]bool{}
	for _, r := range resources.Resources {
		if uris[r.URI] = true; r.URI == "" || r.Name == "" || r.Description == "" || r.MIMEType == "" {
			v.Errorf("resource %+v", r)
		}
	}
	if !uris["test://static-text"] || !uris["test://static-binary"] || !uris["test://watched-resource"] || len(uris) != 3 {
		v.Errorf("resources: %v", uris)
	}
	templates, err := session.ListResourceTemplates(v.ctx, nil)
	if err != nil {
		v.Fatal(err)
	}
	v.same("templates", templates.ResourceTemplates, `[{
		"name": "template", "uriTemplate": "test://template/{id}/data", "description": "A resource for each id", "mimeType": "application/json"}]`)
}

func reads(uri, contents string) func(*visit) {
	return func(v *visit) {
		result, err := v.session(nil).ReadResource(v.ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			v.Fatal(err)
		}
		v.same("contents", result.Contents, contents)
	}
}

const watched = "test://watched-resource"

// touch changes the text of the watched resource.
func touch(v *visit, from, to string) {
	v.Helper()
	v.site.rewrite(v.T, "resources.hcl", from, to)
	if err := v.site.reload(v.ctx, "resources.hcl"); err != nil {
		v.Fatal(err)
	}
}

// subscribes checks that both clients are notified of a change of the resource.
func subscribes(v *visit) {
	c := v.connect()
	v.same("result", c.get("resources/subscribe", object{"uri": watched}), `{}`)
	received := make(chan string, 1)
	session := v.session(&mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { received <- r.Params.URI },
	})
	if err := session.Subscribe(v.ctx, &mcp.SubscribeParams{URI: watched}); err != nil {
		v.Fatal(err)
	}
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	v.same("notification", c.nextNotification("notifications/resources/updated"), `{"uri": "`+watched+`"}`)
	if uri := one(v, received); uri != watched {
		v.Errorf("unexpected update of %s", uri)
	}
}

// unsubscribes checks that a client is notified of other changes, but not of
// the resource. The notification of the second edit of the tools follows all
// notifications of the first.
func unsubscribes(v *visit) {
	c := v.connect()
	c.get("resources/subscribe", object{"uri": watched})
	v.same("result", c.get("resources/unsubscribe", object{"uri": watched}), `{}`)
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	c.call("test_trigger_tool_change", nil)
	for c.receivedParams("notifications/tools/list_changed") == nil {
		c.read()
	}
	before := len(c.receivedParams("notifications/tools/list_changed"))
	c.call("test_trigger_tool_change", nil)
	for len(c.receivedParams("notifications/tools/list_changed")) == before {
		c.read()
	}
	if notified := c.receivedParams("notifications/resources/updated"); notified != nil {
		v.Errorf("notifications: %v", notified)
	}
}

// findsNothing reads an unknown resource. The code depends on the era.
func findsNothing(v *visit) {
	const uri = "test://nonexistent-resource-for-conformance-testing"
	want := map[era]int64{legacy: -32002, modern: -32602}[v.era]
	_, err := v.session(nil).ReadResource(v.ctx, &mcp.ReadResourceParams{URI: uri})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != want {
		v.Fatalf("error: %v", err)
	}
	if data := decoded(v.T, string(refused.Data)).(object); data["uri"] != uri {
		v.Errorf("data: %v", data)
	}
}

var promptScenarios = []scenario{
	{"prompts-list", both, listsPrompts},
	{"prompts-get-simple", both, prompts("test_simple_prompt", nil, `[
		{"role": "user", "content": {"type": "text", "text": "This is a simple prompt for testing."}}]`)},
	{"prompts-get-with-args", both, promptsWithArguments},
	{"prompts-get-embedded-resource", both, prompts("test_prompt_with_embedded_resource", map[string]string{"resourceUri": "test://example-resource"}, `[
		{"role": "user", "content": {"type": "resource", "resource": {
			"uri": "test://example-resource", "mimeType": "text/plain", "text": "Embedded resource content for testing."}}},
		{"role": "user", "content": {"type": "text", "text": "Please process the embedded resource above."}}]`)},
	{"prompts-get-with-image", both, prompts("test_prompt_with_image", nil, `[
		{"role": "user", "content": {"type": "image", "data": "`+pixel+`", "mimeType": "image/png"}},
		{"role": "user", "content": {"type": "text", "text": "Please analyze the image above."}}]`)},
}

func listsPrompts(v *visit) {
	list, err := v.session(nil).ListPrompts(v.ctx, nil)
	if err != nil {
		v.Fatal(err)
	}
	arguments := map[string]int{}
	for _, p := range list.Prompts {
		if arguments[p.Name] = len(p.Arguments); p.Name == "" || p.Description == "" {
			v.Errorf("prompt %+v", p)
		}
	}
	v.same("number of arguments of each prompt", arguments, `{
		"test_simple_prompt": 0, "test_prompt_with_arguments": 2, "test_prompt_with_embedded_resource": 1,
		"test_prompt_with_image": 0, "test_input_required_result_prompt": 0, "changing_prompt": 0}`)
}

func prompts(name string, arguments map[string]string, messages string) func(*visit) {
	return func(v *visit) {
		result, err := v.session(nil).GetPrompt(v.ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			v.Fatal(err)
		}
		v.same("messages", result.Messages, messages)
	}
}

// promptsWithArguments passes both arguments, and then one of them.
func promptsWithArguments(v *visit) {
	given := map[string]string{"arg1": "testValue1", "arg2": "testValue2"}
	prompts("test_prompt_with_arguments", given, `[
		{"role": "user", "content": {"type": "text", "text": "Prompt with arguments: arg1='testValue1', arg2='testValue2'"}}]`)(v)
	_, err := v.session(nil).GetPrompt(v.ctx, &mcp.GetPromptParams{
		Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "testValue1"},
	})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != -32602 {
		v.Errorf("error without arg2: %v", err)
	}
}

// TestList_pagination has more tools than one page holds, on every transport.
// The suite has no scenario for it.
func TestList_pagination(t *testing.T) {
	const tools, page = 1100, 1000
	var text strings.Builder
	for i := range tools {
		fmt.Fprintf(&text, "tool \"tool_%04d\" {\n  run = \"return 1;\"\n}\n", i)
	}
	s := open(t, engine.Options{Name: "test", Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(text.String()), Mode: 0o644}}}})
	for _, l := range lines {
		t.Run(l.name+" "+string(l.era), func(t *testing.T) {
			v := arrive(t, &copies{site: s}, l)
			names := map[string]bool{}
			for tool, err := range v.session(nil).Tools(v.ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				if names[tool.Name] {
					t.Errorf("%s is listed twice", tool.Name)
				}
				names[tool.Name] = true
			}
			if len(names) != tools {
				t.Errorf("%d of %d tools listed", len(names), tools)
			}
			c := v.connect()
			first := c.get("tools/list", nil)
			last := c.get("tools/list", object{"cursor": first["nextCursor"]})
			if n, m := len(first["tools"].([]any)), len(last["tools"].([]any)); n != page || m != tools-page {
				t.Errorf("pages of %d and %d tools", n, m)
			}
			v.lacks(last, "nextCursor")
		})
	}
}

var moreScenarios = []scenario{
	{"log level per request", modernOnly, logsByRequest},
	{"invalid requests", both, refuses},
	{"invalid arguments", both, tellsTheModel},
}

func logsByRequest(v *visit) {
	c := v.connect()
	c.call("test_tool_with_logging", object{"_meta": object{metaLogLevel: "info"}})
	notified := c.receivedParams("notifications/message")
	if len(notified) != len(steps) {
		v.Fatalf("notifications before the result: %v", notified)
	}
	for i, step := range steps {
		v.same("data", notified[i]["data"], `"`+step+`"`)
	}
}

func refuses(v *visit) {
	c := v.connect()
	for _, test := range []struct {
		method string
		params object
		code   int
	}{
		{"unknown/method", nil, -32601},
		{"tools/call", object{"name": "there_is_no_such_tool"}, -32602},
		{"tools/list", object{"cursor": "nowhere"}, -32602},
		{"tools/list", object{"cursor": 5}, -32602},
		{"prompts/get", object{"name": "there_is_no_such_prompt"}, -32602},
		{"prompts/get", object{"name": "test_prompt_with_arguments", "arguments": 5}, -32602},
		{"completion/complete", object{"ref": object{"type": "ref/prompt"}}, -32602},
	} {
		if f := c.askError(test.method, test.params); f.Code != test.code || f.Message == "" {
			v.Errorf("%s %v: error %d %q", test.method, test.params, f.Code, f.Message)
		}
	}
}

func tellsTheModel(v *visit) {
	c := v.connect()
	result := c.call("test_sampling", object{"arguments": object{"prompts": "Hello"}})
	if content, _ := result["content"].([]any); result["isError"] != true || len(content) == 0 {
		v.Errorf("result: %v", result)
	}
}
