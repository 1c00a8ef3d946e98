package rest

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcpd/mcpd/call"
)

// decode reads {"tool","arguments","agent"} of a body that has passed the JSON
// gate, and {"can","state","answers"} of one whose client may be asked. Names are
// matched exactly, as no two decoders agree on more. The error is a [*call.Error].
func decode(raw []byte) (body, error) {
	s := scan{text: raw}
	if s.space(); s.at >= len(raw) || raw[s.at] != '{' {
		return body{}, bad("body", "must be an object")
	}
	s.at++
	var c body
	hasTool := false
	for {
		name, value, ok := s.member()
		if !ok {
			break
		}
		switch name {
		case "tool":
			if value[0] != '"' {
				return body{}, bad("tool", "must be a string")
			}
			c.tool, hasTool = text(value), true
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
	if value[0] == 'n' {
		return nil
	}
	return value
}

func bad(path, rule string) error {
	return &call.Error{Code: call.InvalidInput, Message: path + " " + rule, Violations: []call.Violation{{Path: path, Message: rule}}}
}

// scan walks over JSON text that has passed the gate, and so is well-formed.
type scan struct {
	text []byte
	at   int
}

func (s *scan) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// member returns the next member of the object that the scan is in.
func (s *scan) member() (name string, value []byte, ok bool) {
	if s.space(); s.text[s.at] == ',' {
		s.at++
		s.space()
	}
	if s.text[s.at] == '}' {
		return "", nil, false
	}
	name = text(s.value())
	s.space()
	s.at++ // the colon
	s.space()
	return name, s.value(), true
}

// value returns the value that begins here, and steps over it.
func (s *scan) value() []byte {
	from := s.at
	if strings.IndexByte(`"{[`, s.text[s.at]) < 0 {
		s.until(",}] \t\r\n") // a number or a word
		return s.text[from:s.at]
	}
	for depth := 0; ; {
		switch s.text[s.at] {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		default:
			s.until(`"{}[]`)
		}
		if depth == 0 {
			return s.text[from:s.at]
		}
	}
}

// quoted steps over a string.
func (s *scan) quoted() {
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// until steps to the next of some bytes.
func (s *scan) until(stops string) {
	for strings.IndexByte(stops, s.text[s.at]) < 0 {
		s.at++
	}
}

// text returns what a JSON string says.
func text(quoted []byte) string {
	plain := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(plain, '\\') < 0 {
		return string(plain)
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is well-formed
	return s
}
