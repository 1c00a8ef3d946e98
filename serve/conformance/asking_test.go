//lint:file-ignore SA1019 sampling and roots are deprecated as of 2026-07-28, and are what older clients have

package conformance_test

import (
	"context"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The suite has these only for legacy clients, which receive requests of the
// server. The client of the go-sdk gives the same responses in the modern era.
var askingScenarios = []scenario{
	{"tools-call-sampling", both, samples},
	{"tools-call-elicitation", both, elicits("test_elicitation", object{"message": "Please provide your information"},
		object{"username": "testuser", "email": "test@example.com"}, `{
			"type": "object", "required": ["username", "email"], "properties": {
				"username": {"type": "string", "description": "User's response"},
				"email": {"type": "string", "description": "User's email address"}}}`, "User response: ")},
	{"elicitation-sep1034-defaults", both, elicits("test_elicitation_sep1034_defaults", nil,
		object{"name": "Jane", "age": 31, "score": 1.5, "status": "pending", "verified": false}, `{
			"type": "object", "required": [], "properties": {
				"name": {"type": "string", "description": "User name", "default": "John Doe"},
				"age": {"type": "integer", "description": "User age", "default": 30},
				"score": {"type": "number", "description": "User score", "default": 95.5},
				"status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
				"verified": {"type": "boolean", "description": "Verification status", "default": true}}}`, "Elicitation completed: action=accept")},
	{"elicitation-sep1330-enums", both, elicits("test_elicitation_sep1330_enums", nil, object{
		"untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
		"untitledMulti": []string{"option1", "option2"}, "titledMulti": []string{"value1", "value2"},
	}, enums, "Elicitation completed: action=accept")},
}

const enums = `{"type": "object", "required": [], "properties": {
	"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
	"titledSingle": {"type": "string", "oneOf": [
		{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
	"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
	"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
	"titledMulti": {"type": "array", "items": {"anyOf": [
		{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}}}`

// samples has a tool ask for sampling, of a client with the capability and of
// one without.
func samples(v *visit) {
	asked := make(chan *mcp.CreateMessageParams, 1)
	session := v.session(&mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			asked <- r.Params
			return &mcp.CreateMessageResult{
				Role: "assistant", Model: "test-model", StopReason: "endTurn",
				Content: &mcp.TextContent{Text: "This is a test response from the client"},
			}, nil
		},
	})
	params := &mcp.CallToolParams{Name: "test_sampling", Arguments: object{"prompt": "Test prompt for sampling"}}
	result, err := session.CallTool(v.ctx, params)
	if err != nil || result.IsError {
		v.Fatalf("%+v, %v", result, err)
	}
	v.same("content", result.Content, `[{"type": "text", "text": "LLM response: This is a test response from the client"}]`)
	request := one(v, asked)
	v.same("messages", request.Messages, `[{"role": "user", "content": {"type": "text", "text": "Test prompt for sampling"}}]`)
	if request.MaxTokens != 100 {
		v.Errorf("maxTokens = %d", request.MaxTokens)
	}
	if result, err := v.session(nil).CallTool(v.ctx, params); err == nil && !result.IsError {
		v.Errorf("result for a client without sampling: %+v", result)
	}
}

// elicits has a tool ask the user with a form of the schema.
func elicits(tool string, arguments, answer object, schema, text string) func(*visit) {
	return func(v *visit) {
		asked := make(chan *mcp.ElicitParams, 1)
		session := v.session(&mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- r.Params
				return &mcp.ElicitResult{Action: "accept", Content: maps.Clone(answer)}, nil // the SDK sets defaults
			},
		})
		result, err := session.CallTool(v.ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil || result.IsError {
			v.Fatalf("%+v, %v", result, err)
		}
		v.same("schema", one(v, asked).RequestedSchema, schema)
		output := result.Content[0].(*mcp.TextContent).Text
		if !strings.HasPrefix(output, text) {
			v.Errorf("result: %s", output)
		}
		_, content, _ := strings.Cut(output, "{")
		content = "{" + content
		if tool == "test_elicitation" {
			v.same("response", object{"action": "accept", "content": answer}, content)
			return
		}
		v.same("response", answer, content)
	}
}
