package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// PlainBlocks returns the content blocks that a script returns as plain values, as a JSON array.
// value is one block, or a non-empty array of blocks only. It returns nil for every other value.
//
// A block has the members that MCP requires for its type, valid, and no member that MCP does not
// define for it (2025-11-25 schema, ContentBlock). The rule is strict as scripts also return data:
// a row {"type": "text", "text": "…", "author": "…"} stays a value.
func PlainBlocks(value []byte) json.RawMessage {
	value = bytes.TrimSpace(value)
	if !bytes.Contains(value, []byte(`"type"`)) { // most values end here, unparsed
		return nil
	}
	if value[0] == '{' {
		value = append(append([]byte{'['}, value...), ']')
	}
	elements := json.NewDecoder(bytes.NewReader(value))
	if open, err := elements.Token(); err != nil || open != json.Delim('[') || !elements.More() {
		return nil
	}
	for elements.More() {
		var members map[string]json.RawMessage
		if elements.Decode(&members) != nil || !isPlainBlock(members) {
			return nil
		}
	}
	return value
}

// blockMembers are the members of each block type, the required ones first.
var blockMembers = map[string][]string{
	"text":          {"text", "type", "annotations", "_meta"},
	"image":         {"data", "mimeType", "type", "annotations", "_meta"},
	"audio":         {"data", "mimeType", "type", "annotations", "_meta"},
	"resource":      {"resource", "type", "annotations", "_meta"},
	"resource_link": {"uri", "name", "type", "title", "description", "mimeType", "size", "icons", "annotations", "_meta"},
}

var (
	resourceMembers   = []string{"uri", "mimeType", "text", "blob", "_meta"}
	annotationMembers = []string{"audience", "priority", "lastModified"}
)

// isPlainBlock reports whether the members form a valid block without other members.
func isPlainBlock(members map[string]json.RawMessage) bool {
	kind, _ := stringOf(members["type"])
	known, ok := blockMembers[kind]
	if !ok || !onlyMembers(members, known) || !areTyped(members) {
		return false
	}
	b := block{Type: kind}
	b.Text, b.Data = optionalString(members["text"]), optionalString(members["data"])
	b.MIMEType, _ = stringOf(members["mimeType"])
	b.URI, _ = stringOf(members["uri"])
	b.Name, _ = stringOf(members["name"])
	if kind == "resource" {
		var inner map[string]json.RawMessage
		if json.Unmarshal(members["resource"], &inner) != nil || !onlyMembers(inner, resourceMembers) || !areTyped(inner) {
			return false
		}
		b.Resource = &embedded{Text: optionalString(inner["text"]), Blob: optionalString(inner["blob"])}
		b.Resource.URI, _ = stringOf(inner["uri"])
		b.Resource.MIMEType, _ = stringOf(inner["mimeType"])
	}
	return b.check() == nil
}

// onlyMembers reports whether an object has known members only.
func onlyMembers(members map[string]json.RawMessage, known []string) bool {
	for name := range members {
		if !slices.Contains(known, name) {
			return false
		}
	}
	return true
}

// areTyped reports whether every member of a block has the correct type.
func areTyped(members map[string]json.RawMessage) bool {
	for name, value := range members {
		ok := true
		switch name {
		case "annotations":
			ok = areAnnotations(value)
		case "_meta", "resource":
			ok = value[0] == '{'
		case "icons":
			var icons []map[string]json.RawMessage
			ok = value[0] == '[' && json.Unmarshal(value, &icons) == nil && !slices.ContainsFunc(icons, func(icon map[string]json.RawMessage) bool { return icon["src"] == nil })
		case "size":
			var size float64
			ok = json.Unmarshal(value, &size) == nil && size >= 0 && value[0] != 'n'
		default:
			_, ok = stringOf(value)
		}
		if !ok {
			return false
		}
	}
	return true
}

// areAnnotations reports whether a value is valid annotations (2025-11-25 schema, Annotations).
func areAnnotations(value json.RawMessage) bool {
	var members map[string]json.RawMessage
	if value[0] != '{' || json.Unmarshal(value, &members) != nil || !onlyMembers(members, annotationMembers) {
		return false
	}
	var decoded struct {
		Audience     []string
		Priority     *float64
		LastModified *string
	}
	if json.Unmarshal(value, &decoded) != nil {
		return false
	}
	isUnknown := func(role string) bool { return role != "user" && role != "assistant" }
	return !slices.ContainsFunc(decoded.Audience, isUnknown) && (decoded.Priority == nil || *decoded.Priority >= 0 && *decoded.Priority <= 1)
}

// stringOf returns the string in a JSON value; ok is false for any other value.
func stringOf(value json.RawMessage) (s string, ok bool) {
	ok = len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil
	return s, ok
}

// optionalString returns the string in a JSON value; nil for any other value.
func optionalString(value json.RawMessage) *string {
	if s, ok := stringOf(value); ok {
		return &s
	}
	return nil
}

// maxValues is the maximum number of values of a completion (2026-07-28
// server/utilities/completion, Completion Results).
const maxValues = 100

// Completion returns {"completion": …} for the result of a completion script: an array of strings.
// Only the first 100 are sent.
func Completion(r *scripting.Result) (json.RawMessage, error) {
	wrong := errors.New("the completion must return an array of strings")
	var returned []*string
	switch {
	case r.Kind == scripting.Nothing:
	case r.Kind != scripting.Value || json.Unmarshal(r.JSON, &returned) != nil:
		return nil, wrong
	}
	values := make([]string, len(returned))
	for i, v := range returned {
		if v == nil {
			return nil, wrong
		}
		values[i] = *v
	}
	return completion(values), nil
}

// CompletionByPrefix returns {"completion": …} for the values with the typed prefix, ignoring case.
func CompletionByPrefix(values []string, typed string) json.RawMessage {
	var fit []string
	for _, v := range values {
		if len(v) >= len(typed) && strings.EqualFold(v[:len(typed)], typed) {
			fit = append(fit, v)
		}
	}
	return completion(fit)
}

func completion(values []string) json.RawMessage {
	sent := values[:min(len(values), maxValues)]
	if sent == nil {
		sent = []string{}
	}
	// Strings always encode.
	list, _ := json.Marshal(sent)
	b := appendMember([]byte(`{"completion":{`), "values", list)
	b = appendInt(b, "total", int64(len(values)))
	b = append(b, `,"hasMore":`...)
	if len(values) > maxValues {
		return append(b, "true}}"...)
	}
	return append(b, "false}}"...)
}
