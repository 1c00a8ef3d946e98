package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/httpheader"
)

// keyMirror marks a property of an input schema whose value clients repeat in
// a header (2026-07-28 server/tools, x-mcp-header).
const keyMirror = "x-mcp-header"

// mirror is one argument that clients repeat in the header Mcp-Param-NAME.
type mirror struct {
	// header is the canonical name of the header.
	header string
	// path leads from the arguments to the value.
	path []string
}

// findMirrors returns the annotated properties of an input schema, in the
// order of their headers. The error names the annotation that clients would
// refuse the whole tool for.
func findMirrors(schema []byte) ([]mirror, error) {
	if !strings.Contains(string(schema), keyMirror) {
		return nil, nil
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	var found finder
	if err := found.schema(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(found.mirrors, func(a, b mirror) int { return strings.Compare(a.header, b.header) })
	for i := 1; i < len(found.mirrors); i++ {
		if found.mirrors[i].header == found.mirrors[i-1].header {
			return nil, fmt.Errorf("two properties have the %s of %s", keyMirror, found.mirrors[i].header)
		}
	}
	return found.mirrors, nil
}

type finder struct{ mirrors []mirror }

// schema looks through one schema. reachable says that it is the root, or that
// only "properties" lead to it.
func (f *finder) schema(value any, path []string, reachable bool) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	if annotation, ok := object[keyMirror]; ok {
		if err := f.annotation(annotation, object["type"], path, reachable); err != nil {
			return err
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if err := f.keyword(keyword, object[keyword], path, reachable); err != nil {
			return err
		}
	}
	return nil
}

// keyword looks through the schemas below one keyword (JSON Schema 2020-12
// core section 10); what is not a schema, such as an enum, is left alone.
func (f *finder) keyword(keyword string, value any, path []string, reachable bool) error {
	switch keyword {
	case "properties":
		return f.named(value, path, reachable)
	case "patternProperties", "$defs", "definitions", "dependentSchemas":
		return f.named(value, path, false)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		list, _ := value.([]any)
		for _, schema := range list {
			if err := f.schema(schema, path, false); err != nil {
				return err
			}
		}
	case "items", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"propertyNames", "not", "if", "then", "else":
		return f.schema(value, path, false)
	}
	return nil
}

func (f *finder) named(value any, path []string, reachable bool) error {
	schemas, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if err := f.schema(schemas[name], append(slices.Clip(path), name), reachable); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) annotation(annotation, typ any, path []string, reachable bool) error {
	name, ok := annotation.(string)
	switch {
	case !ok || !httpheader.IsToken(name):
		return fmt.Errorf("%s must be the rest of a header's name: letters, digits and hyphens", keyMirror)
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s %q must stand in a property that only \"properties\" lead to", keyMirror, name)
	case typ != "string" && typ != "integer" && typ != "boolean":
		return fmt.Errorf("%s %q must stand in a string, an integer or a boolean", keyMirror, name)
	}
	if len(f.mirrors) == maxMirrors {
		return errors.New("too many properties have an " + keyMirror)
	}
	f.mirrors = append(f.mirrors, mirror{header: headerParam + canonical(name), path: path})
	return nil
}

// maxMirrors bounds the headers that a client must send for one tool.
const maxMirrors = 64
