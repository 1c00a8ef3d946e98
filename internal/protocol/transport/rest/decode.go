package rest

import (
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// decode reads {"tool","arguments","agent"} of a body that has passed the JSON
// gate, and {"can","state","answers"} of one whose client may be asked. Names are
// matched exactly, as no two decoders agree on more.
func decode(raw []byte) (body, *call.Error) {
	object, ok := jsontext.Members(raw)
	if !ok {
		return body{}, bad("body", "must be an object")
	}
	var c body
	hasTool := false
	for {
		name, value, ok := object.Member()
		if !ok {
			break
		}
		switch string(name) {
		case "tool":
			if c.tool, hasTool = jsontext.Text(value); !hasTool {
				return body{}, bad("tool", "must be a string")
			}
		case "arguments":
			c.arguments = orNil(value)
		case "agent":
			c.agent = orNil(value)
		case "can":
			c.can = orNil(value)
		case "state":
			c.state = orNil(value)
		case "answers":
			c.answers = orNil(value)
		default:
			return body{}, bad("body", "has an unknown member; it takes tool, arguments and agent")
		}
	}
	if !hasTool {
		return body{}, bad("tool", "is required")
	}
	return c, nil
}

// orNil returns nil for null.
func orNil(value []byte) json.RawMessage {
	if jsontext.IsNull(value) {
		return nil
	}
	return value
}

func bad(path, rule string) *call.Error {
	return &call.Error{Code: call.InvalidInput, Message: path + " " + rule, Violations: []call.Violation{{Path: path, Message: rule}}}
}
