package conformance_test

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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
			v.Errorf("a resource is %+v", r)
		}
	}
	if !uris["test://static-text"] || !uris["test://static-binary"] || !uris["test://watched-resource"] || len(uris) != 3 {
		v.Errorf("the resources are %v", uris)
	}
	templates, err := session.ListResourceTemplates(v.ctx, nil)
	if err != nil {
		v.Fatal(err)
	}
	v.same("the templates", templates.ResourceTemplates, `[{
		"name": "template", "uriTemplate": "test://template/{id}/data", "description": "A resource for each id", "mimeType": "application/json"}]`)
}

func reads(uri, contents string) func(*visit) {
	return func(v *visit) {
		result, err := v.session(nil).ReadResource(v.ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			v.Fatal(err)
		}
		v.same("the contents", result.Contents, contents)
	}
}

const watched = "test://watched-resource"

// touch gives the watched resource another text.
func touch(v *visit, from, to string) {
	v.Helper()
	v.site.rewrite(v.T, "resources.hcl", from, to)
	if err := v.site.reload(v.ctx, "resources.hcl"); err != nil {
		v.Fatal(err)
	}
}

// subscribes has both clients hear of a change of the resource.
func subscribes(v *visit) {
	c := v.connect()
	v.same("the result", c.get("resources/subscribe", object{"uri": watched}), `{}`)
	heard := make(chan string, 1)
	session := v.session(&mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
	})
	if err := session.Subscribe(v.ctx, &mcp.SubscribeParams{URI: watched}); err != nil {
		v.Fatal(err)
	}
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	v.same("the notification", c.hear("notifications/resources/updated"), `{"uri": "`+watched+`"}`)
	if uri := one(v, heard); uri != watched {
		v.Errorf("%s has changed", uri)
	}
}

// unsubscribes hears of other changes, and not of that of the resource. The
// news of the second edit of the tools comes after all that is said of the first.
func unsubscribes(v *visit) {
	c := v.connect()
	c.get("resources/subscribe", object{"uri": watched})
	v.same("the result", c.get("resources/unsubscribe", object{"uri": watched}), `{}`)
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	c.call("test_trigger_tool_change", nil)
	for c.told("notifications/tools/list_changed") == nil {
		c.read()
	}
	before := len(c.told("notifications/tools/list_changed"))
	c.call("test_trigger_tool_change", nil)
	for len(c.told("notifications/tools/list_changed")) == before {
		c.read()
	}
	if told := c.told("notifications/resources/updated"); told != nil {
		v.Errorf("the client is told %v", told)
	}
}

// findsNothing reads what there is not. The code is that of the era.
func findsNothing(v *visit) {
	const uri = "test://nonexistent-resource-for-conformance-testing"
	want := map[era]int64{legacy: -32002, modern: -32602}[v.era]
	_, err := v.session(nil).ReadResource(v.ctx, &mcp.ReadResourceParams{URI: uri})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != want {
		v.Fatalf("the error is %v", err)
	}
	if data := decoded(v.T, string(refused.Data)).(object); data["uri"] != uri {
		v.Errorf("the data are %v", data)
	}
}
