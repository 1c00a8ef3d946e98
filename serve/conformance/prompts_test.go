package conformance_test

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
			v.Errorf("a prompt is %+v", p)
		}
	}
	v.same("how many arguments each prompt takes", arguments, `{
		"test_simple_prompt": 0, "test_prompt_with_arguments": 2, "test_prompt_with_embedded_resource": 1,
		"test_prompt_with_image": 0, "test_input_required_result_prompt": 0, "changing_prompt": 0}`)
}

func prompts(name string, arguments map[string]string, messages string) func(*visit) {
	return func(v *visit) {
		result, err := v.session(nil).GetPrompt(v.ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			v.Fatal(err)
		}
		v.same("the messages", result.Messages, messages)
	}
}

// promptsWithArguments gives both arguments, and then one of them.
func promptsWithArguments(v *visit) {
	given := map[string]string{"arg1": "testValue1", "arg2": "testValue2"}
	prompts("test_prompt_with_arguments", given, `[
		{"role": "user", "content": {"type": "text", "text": "Prompt with arguments: arg1='testValue1', arg2='testValue2'"}}]`)(v)
	_, err := v.session(nil).GetPrompt(v.ctx, &mcp.GetPromptParams{
		Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "testValue1"},
	})
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != -32602 {
		v.Errorf("without arg2 the error is %v", err)
	}
}
