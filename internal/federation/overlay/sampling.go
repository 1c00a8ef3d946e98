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
func (rc *remoteCall) sampling(said jsonObject) (map[string]any, error) {
	params, err := knownMembers(said, "temperature", "stopSequences", "metadata")
	if err != nil {
		return nil, err
	}
	params["systemPrompt"] = rc.labeled(said.text("systemPrompt"), safetext.Prompt)
	params["maxTokens"] = rc.maxTokens(said["maxTokens"])
	messages, err := convertAll(said["messages"], rc.message)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, errors.New("a sampling request needs at least one message")
	}
	params["messages"] = messages
	if said["modelPreferences"] != nil {
		if params["modelPreferences"], err = modelPreferences(presentMembers(said["modelPreferences"])); err != nil {
			return nil, err
		}
	}
	return params, setTools(said, params)
}

// modelPreferences converts the model preferences and hints.
func modelPreferences(said jsonObject) (map[string]any, error) {
	for old, now := range map[string]string{"intelligenceLevel": "intelligencePriority", "costLevel": "costPriority"} {
		if said[now] == nil && said[old] != nil {
			said[now] = said[old] // names from before the specification
		}
	}
	params, err := knownMembers(said, "costPriority", "speedPriority", "intelligencePriority")
	if err != nil || said["hints"] == nil {
		return params, err
	}
	hints, err := convertAll(said["hints"], func(said jsonObject) (map[string]any, error) { return knownMembers(said, "name") })
	if len(hints) > 0 {
		params["hints"] = hints
	}
	return params, err
}

// setTools sets the tools of a sampling request, and the tool choice. An empty list is dropped:
// a client without tool support would reject it.
func setTools(said jsonObject, params map[string]any) error {
	if said["tools"] == nil {
		return nil
	}
	tools, err := convertAll(said["tools"], func(said jsonObject) (map[string]any, error) {
		return knownMembers(said, "name", "title", "description", "inputSchema", "outputSchema", "annotations")
	})
	if err != nil || len(tools) == 0 {
		return err
	}
	if params["tools"] = tools; said["toolChoice"] != nil {
		params["toolChoice"], err = knownMembers(presentMembers(said["toolChoice"]), "mode")
	}
	return err
}

// message converts a message of the conversation.
func (rc *remoteCall) message(said jsonObject) (map[string]any, error) {
	role := said.text("role")
	if role != "user" && role != "assistant" {
		return nil, errors.New("the role of a message must be user or assistant")
	}
	var content any
	var err error
	if isObject(said["content"]) {
		content, err = rc.block(presentMembers(said["content"]))
	} else {
		content, err = convertAll(said["content"], rc.block)
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
func (rc *remoteCall) block(said jsonObject) (map[string]any, error) {
	kind := said.text("type")
	of, ok := contentTypes[kind]
	switch {
	case !ok:
		return nil, errors.New("unknown content type in a message")
	case kind == "tool_use" || kind == "tool_result":
		if !rc.invocation.Host.InputPolicy.Client.SampleTools {
			return nil, errors.New("the model of this client uses no tools")
		}
	}
	for _, name := range of.needs {
		if said[name] == nil {
			return nil, fmt.Errorf("content of the type %s needs the member %s", kind, name)
		}
	}
	params, err := knownMembers(said, slices.Concat(of.needs, of.may)...)
	if err == nil {
		params["type"] = kind
	}
	return params, err
}

// convertAll converts each object of a list.
func convertAll(list json.RawMessage, make func(said jsonObject) (map[string]any, error)) ([]map[string]any, error) {
	var raw []json.RawMessage
	if json.Unmarshal(list, &raw) != nil {
		return nil, errors.New("a sampling request needs a list of messages")
	}
	all := []map[string]any{}
	for _, value := range raw {
		if !isObject(value) {
			return nil, errors.New("a sampling request contains a value that must be an object")
		}
		one, err := make(presentMembers(value))
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
func knownMembers(said jsonObject, names ...string) (map[string]any, error) {
	params := map[string]any{}
	for _, name := range names {
		value := said[name]
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
	most := cmp.Or(rc.ask.MaxTokens, defaultTokens)
	var n int
	if json.Unmarshal(wanted, &n) != nil || n <= 0 {
		return min(1000, most)
	}
	return min(n, most)
}
