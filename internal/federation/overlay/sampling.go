package overlay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/reply"
)

// sampling returns the parameters of a sampling request (2025-11-25 and 2026-07-28
// client/sampling). It does not pass on includeContext, which asks for context of other
// servers.
func (rc *remoteCall) sampling(object jsonObject) (map[string]any, error) {
	params, err := knownMembers(object, "temperature", "stopSequences", "metadata")
	if err != nil {
		return nil, err
	}
	params["systemPrompt"] = rc.labeled(object.text("systemPrompt"), safetext.Prompt)
	params["maxTokens"] = rc.maxTokens(object["maxTokens"])
	messages, err := convertAll(object["messages"], rc.message)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, errors.New("a sampling request needs at least one message")
	}
	params["messages"] = messages
	if object["modelPreferences"] != nil {
		if params["modelPreferences"], err = modelPreferences(presentMembers(object["modelPreferences"])); err != nil {
			return nil, err
		}
	}
	return params, setTools(object, params)
}

// modelPreferences converts the model preferences and hints.
func modelPreferences(object jsonObject) (map[string]any, error) {
	for old, now := range map[string]string{"intelligenceLevel": "intelligencePriority", "costLevel": "costPriority"} {
		if object[now] == nil && object[old] != nil {
			object[now] = object[old] // names from before the specification
		}
	}
	params, err := knownMembers(object, "costPriority", "speedPriority", "intelligencePriority")
	if err != nil || object["hints"] == nil {
		return params, err
	}
	hints, err := convertAll(object["hints"], func(object jsonObject) (map[string]any, error) { return knownMembers(object, "name") })
	if len(hints) > 0 {
		params["hints"] = hints
	}
	return params, err
}

// setTools sets the tools of a sampling request, and the tool choice. An empty list is dropped:
// a client without tool support would reject it.
func setTools(object jsonObject, params map[string]any) error {
	if object["tools"] == nil {
		return nil
	}
	tools, err := convertAll(object["tools"], func(object jsonObject) (map[string]any, error) {
		return knownMembers(object, "name", "title", "description", "inputSchema", "outputSchema", "annotations")
	})
	if err != nil || len(tools) == 0 {
		return err
	}
	if params["tools"] = tools; object["toolChoice"] != nil {
		params["toolChoice"], err = knownMembers(presentMembers(object["toolChoice"]), "mode")
	}
	return err
}

// message converts a message of the conversation.
func (rc *remoteCall) message(object jsonObject) (map[string]any, error) {
	role := object.text("role")
	if role != "user" && role != "assistant" {
		return nil, errors.New("the role of a message must be user or assistant")
	}
	var content any
	var err error
	if isObject(object["content"]) {
		content, err = rc.block(presentMembers(object["content"]))
	} else {
		content, err = convertAll(object["content"], rc.block)
	}
	return map[string]any{"role": role, "content": content}, err
}

// contentTypes lists the members of each content type: the required and the optional ones.
var contentTypes = map[string]struct{ needs, may []string }{
	"text":        {[]string{"text"}, []string{"annotations"}},
	"image":       {[]string{"data", "mimeType"}, []string{"annotations"}},
	"audio":       {[]string{"data", "mimeType"}, []string{"annotations"}},
	"tool_use":    {[]string{"id", "name", "input"}, nil},
	"tool_result": {[]string{"toolUseId", "content"}, []string{"structuredContent", "isError"}},
}

// block converts a content block. Tool blocks need a client that supports tools in sampling.
func (rc *remoteCall) block(object jsonObject) (map[string]any, error) {
	kind := object.text("type")
	allowed, ok := contentTypes[kind]
	switch {
	case !ok:
		return nil, errors.New("unknown content type in a message")
	case kind == "tool_use" || kind == "tool_result":
		if !rc.invocation.Host.InputPolicy.Client.SampleTools {
			return nil, errors.New("the model of this client uses no tools")
		}
	}
	for _, name := range allowed.needs {
		if object[name] == nil {
			return nil, fmt.Errorf("content of the type %s needs the member %s", kind, name)
		}
	}
	params, err := knownMembers(object, slices.Concat(allowed.needs, allowed.may)...)
	if err == nil {
		params["type"] = kind
	}
	return params, err
}

// convertAll converts each object of a list.
func convertAll(list json.RawMessage, convert func(object jsonObject) (map[string]any, error)) ([]map[string]any, error) {
	var raw []json.RawMessage
	if json.Unmarshal(list, &raw) != nil {
		return nil, errors.New("a sampling request needs a list of messages")
	}
	all := []map[string]any{}
	for _, value := range raw {
		if !isObject(value) {
			return nil, errors.New("a sampling request contains a value that must be an object")
		}
		one, err := convert(presentMembers(value))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// memberChecks validate the members of a sampling request, by name.
var memberChecks = map[string]func(json.RawMessage) bool{
	"text": isText, "data": isText, "mimeType": isText, "id": isText, "toolUseId": isText, "name": isText, "title": isText, "description": isText, "mode": isText,
	"temperature": isNumber, "costPriority": isNumber, "speedPriority": isNumber, "intelligencePriority": isNumber,
	"metadata": isObject, "annotations": isObject, "input": isObject, "inputSchema": isObject, "outputSchema": isObject,
	"structuredContent": func(json.RawMessage) bool { return true },
	"isError":           func(value json.RawMessage) bool { return string(value) == "true" || string(value) == "false" },
	"content":           func(value json.RawMessage) bool { return reply.CheckBlocks(value) == nil },
	"stopSequences": func(value json.RawMessage) bool {
		var texts []string
		return json.Unmarshal(value, &texts) == nil
	},
}

// knownMembers returns the named members that are present, and checks their types.
func knownMembers(object jsonObject, names ...string) (map[string]any, error) {
	params := map[string]any{}
	for _, name := range names {
		value := object[name]
		if value == nil {
			continue
		}
		if !memberChecks[name](value) {
			return nil, fmt.Errorf("the member %s of a sampling request is invalid", name)
		}
		params[name] = value
	}
	return params, nil
}

func isText(value json.RawMessage) bool {
	var text *string
	return json.Unmarshal(value, &text) == nil && text != nil
}

// defaultTokens is the token limit if the block sets none.
const defaultTokens = 4096

// maxTokens returns the token limit: the wanted number, within the limit of the block.
func (rc *remoteCall) maxTokens(wanted json.RawMessage) int {
	limit := cmp.Or(rc.ask.MaxTokens, defaultTokens)
	var n int
	if json.Unmarshal(wanted, &n) != nil || n <= 0 {
		return min(1000, limit)
	}
	return min(n, limit)
}
