package overlay

import (
	"encoding/json"
	"maps"
	"slices"
)

// withoutNull returns what is said of a field that may be null as if it might not: MCP knows
// of no such fields, and Python servers write them for what is optional. It reports whether
// it was one.
func withoutNull(said members) (members, bool) {
	var types []string
	var either []json.RawMessage
	of := members{}
	switch {
	case json.Unmarshal(said["type"], &types) == nil && len(types) == 2 && slices.Contains(types, "null"):
		other := types[0]
		if other == "null" {
			other = types[1]
		}
		maps.Copy(of, said)
		of["type"], _ = json.Marshal(other) // text always encodes
	case said["type"] == nil && json.Unmarshal(said["anyOf"], &either) == nil && len(either) == 2:
		null := slices.IndexFunc(either, func(one json.RawMessage) bool { return given(one).text("type") == "null" })
		if null < 0 {
			return said, false
		}
		maps.Copy(of, given(either[1-null]))
		maps.Copy(of, said) // what is said of the field as a whole goes before
		delete(of, "anyOf")
	default:
		return said, false
	}
	var enum []json.RawMessage
	if json.Unmarshal(of["enum"], &enum) == nil {
		// What was read always encodes.
		of["enum"], _ = json.Marshal(slices.DeleteFunc(enum, isAbsent))
	}
	return of, true
}
