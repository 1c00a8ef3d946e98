//lint:file-ignore SA1019 logging is deprecated as of 2026-07-28, and is what older clients have

package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var toolScenarios = []scenario{
	{"tools-list", both, listsTools},
	{"tools-call-simple-text", both, returns("test_simple_text", `[{"type": "text", "text": "This is a simple text response for testing."}]`)},
	{"tools-call-image", both, returns("test_image_content", `[{"type": "image", "data": "`+png+`", "mimeType": "image/png"}]`)},
	{"tools-call-audio", both, returns("test_audio_content", `[{"type": "audio", "data": "`+wav+`", "mimeType": "audio/wav"}]`)},
	{"tools-call-embedded-resource", both, returns("test_embedded_resource", `[{"type": "resource", "resource": {
		"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}]`)},
	{"tools-call-mixed-content", both, returns("test_multiple_content_types", `[
		{"type": "text", "text": "Multiple content types test:"},
		{"type": "image", "data": "`+png+`", "mimeType": "image/png"},
		{"type": "resource", "resource": {
			"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}}]`)},
	{"tools-call-error", both, fails},
	{"tools-call-with-logging", legacyOnly, logs},
	{"tools-call-with-progress", both, progresses},
	{"json-schema-2020-12", both, schemasArrive},
}

// A red pixel, and eight samples of silence, from media.json.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
	wav = "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YRAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,64}$`)

func listsTools(v *visit) {
	list, err := v.session(nil).ListTools(v.ctx, nil)
	if err != nil {
		v.Fatal(err)
	}
	for _, tool := range list.Tools {
		schema, _ := tool.InputSchema.(object)
		if !toolName.MatchString(tool.Name) || tool.Description == "" || schema["type"] != "object" {
			v.Errorf("tool %q has the description %q and the schema %v", tool.Name, tool.Description, schema)
		}
	}
	if want := v.site.engine.Status().Tools; len(list.Tools) != want {
		v.Errorf("%d of %d tools listed", len(list.Tools), want)
	}
}

// returns calls a tool without arguments.
func returns(tool, content string) func(*visit) {
	return func(v *visit) {
		result, err := v.session(nil).CallTool(v.ctx, &mcp.CallToolParams{Name: tool})
		if err != nil || result.IsError {
			v.Fatalf("%+v, %v", result, err)
		}
		v.same("content", result.Content, content)
	}
}

func fails(v *visit) {
	result, err := v.session(nil).CallTool(v.ctx, &mcp.CallToolParams{Name: "test_error_handling"})
	if err != nil || !result.IsError {
		v.Fatalf("%+v, %v", result, err)
	}
	v.same("content", result.Content, `[{"type": "text", "text": "This tool intentionally returns an error for testing"}]`)
}

// steps are the messages of the logging tool, in order.
var steps = []string{"Tool execution started", "Tool processing data", "Tool execution completed"}

// logs has a tool log before its result, for a client that sees its wire and
// for the client of the go-sdk.
func logs(v *visit) {
	c := v.connect()
	c.get("logging/setLevel", object{"level": "debug"})
	c.call("test_tool_with_logging", nil)
	notified := c.receivedParams("notifications/message")
	if len(notified) != len(steps) {
		v.Fatalf("notifications before the result: %v", notified)
	}
	for i, step := range steps {
		v.same("level of "+step, notified[i]["level"], `"info"`)
		v.same("data", notified[i]["data"], `"`+step+`"`)
	}

	received := make(chan *mcp.LoggingMessageParams, len(steps))
	session := v.session(&mcp.ClientOptions{
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { received <- r.Params },
	})
	if err := session.SetLoggingLevel(v.ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		v.Fatal(err)
	}
	if _, err := session.CallTool(v.ctx, &mcp.CallToolParams{Name: "test_tool_with_logging"}); err != nil {
		v.Fatal(err)
	}
	for _, step := range steps {
		if got := one(v, received); got.Level != "info" || got.Data != step {
			v.Errorf("notification: %+v", got)
		}
	}
}

// progresses is logs for progress.
func progresses(v *visit) {
	c := v.connect()
	c.call("test_tool_with_progress", object{"_meta": object{"progressToken": "progress-test-1"}})
	notified := c.receivedParams("notifications/progress")
	if len(notified) != 3 {
		v.Fatalf("notifications before the result: %v", notified)
	}
	for i, done := range []float64{0, 50, 100} {
		if p := notified[i]; p["progress"] != done || p["total"] != 100.0 || p["progressToken"] != "progress-test-1" {
			v.Errorf("notification: %v", p)
		}
	}

	received := make(chan *mcp.ProgressNotificationParams, 3)
	session := v.session(&mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { received <- r.Params },
	})
	params := &mcp.CallToolParams{Name: "test_tool_with_progress"}
	params.SetProgressToken("progress-test-2")
	if _, err := session.CallTool(v.ctx, params); err != nil {
		v.Fatal(err)
	}
	for _, done := range []float64{0, 50, 100} {
		if got := one(v, received); got.Progress != done || got.Total != 100 || got.ProgressToken != "progress-test-2" {
			v.Errorf("notification: %+v", got)
		}
	}
}

// schemasArrive compares a schema with its source file.
func schemasArrive(v *visit) {
	want, err := os.ReadFile(fixtures + "/tools.d/contact.json")
	if err != nil {
		v.Fatal(err)
	}
	for tool, err := range v.session(nil).Tools(v.ctx, nil) {
		if err != nil {
			v.Fatal(err)
		}
		if tool.Name == "json_schema_2020_12_tool" {
			v.same("schema", tool.InputSchema, string(json.RawMessage(want)))
			return
		}
	}
	v.Error("the tool is not listed")
}
