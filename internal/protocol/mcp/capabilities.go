package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// capabilitiesOf reads a capabilities object, as far as the revision has the
// features that it declares.
func capabilitiesOf(object []byte, version string) (can call.Capabilities) {
	declared, ok := jsontext.Members(object)
	for ok {
		var name, value []byte
		if name, value, ok = declared.Member(); !ok || !jsontext.IsObject(value) {
			continue
		}
		switch string(name) {
		case "elicitation":
			can.URL = jsontext.IsObject(jsontext.Get(value, "url")) && version >= version20251125
			can.Form = (jsontext.IsObject(jsontext.Get(value, "form")) || !jsontext.IsObject(jsontext.Get(value, "url"))) && version >= version20250618
		case "sampling":
			can.Sample = true
			can.SampleTools = jsontext.IsObject(jsontext.Get(value, "tools")) && version >= version20251125
		case "roots":
			can.Roots = true
		case "extensions":
			can.Tasks = jsontext.IsObject(jsontext.Get(value, keyTasks)) && version >= version20260728
		}
	}
	return can
}

// can returns what the client can be asked for in the midst of a request. A
// completion asks for nothing, and neither does a call whose client takes
// nothing before the answer.
func (c *request) can(r *call.Request) call.Capabilities {
	switch {
	case r.Argument != "":
		return call.Capabilities{}
	case c.era == modern:
		can := capabilitiesOf(c.meta.capabilities, newestModern)
		can.Tasks = can.Tasks && r.Kind == call.Tools && c.server.tasks != nil
		return can
	case c.origin.emit == nil:
		return call.Capabilities{}
	}
	return c.origin.session.can
}

// missing returns the wanted capabilities that a client does not have.
func missing(can, wanted call.Capabilities) call.Capabilities {
	return call.Capabilities{
		Form: wanted.Form && !can.Form, URL: wanted.URL && !can.URL,
		Sample: wanted.Sample && !can.Sample, SampleTools: wanted.SampleTools && !can.SampleTools,
		Roots: wanted.Roots && !can.Roots,
	}
}

// capabilitiesObject returns the JSON object that declares capabilities.
func capabilitiesObject(can call.Capabilities) []byte {
	b := []byte{'{'}
	if can.URL {
		b = appendValue(b, "elicitation", []byte(`{"url":{}}`))
	} else if can.Form {
		b = appendValue(b, "elicitation", []byte(`{}`))
	}
	if can.SampleTools {
		b = appendValue(b, "sampling", []byte(`{"tools":{}}`))
	} else if can.Sample {
		b = appendValue(b, "sampling", []byte(`{}`))
	}
	if can.Roots {
		b = appendValue(b, "roots", []byte(`{}`))
	}
	if can.Tasks {
		b = appendValue(b, "extensions", []byte(`{"`+keyTasks+`":{}}`))
	}
	return append(b, '}')
}
