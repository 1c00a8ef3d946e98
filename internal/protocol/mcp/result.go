package mcp

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func (req *request) succeeded(r *call.Request, response *call.Result) *result {
	if r.Kind == call.Tools {
		return req.toolResult(response)
	}
	reply := []byte(response.Reply)
	if r.Kind == call.Prompts && r.Argument == "" {
		if version := req.version(); !hasLinks(version) {
			reply = fitMessages(reply, func(dst, block []byte, n int) []byte { return appendFitted(dst, block, version, n) })
		}
	}
	encoded := &result{members: inner(reply), revision: response.Revision}
	if req.era == modern && r.Kind == call.Resources {
		encoded.more = appendCaching(nil, 0, true)
		if r.Resume == nil {
			encoded.more = appendCaching(nil, response.TTL, !response.Public)
		}
	}
	return encoded
}

// toolResult encodes the success of a tool (2026-07-28 server/tools, Tool
// Result). Legacy revisions allow only objects as structured content, and the
// older ones have fewer types of content blocks.
func (req *request) toolResult(r *call.Result) *result {
	b := make([]byte, 0, len(r.Content)+len(r.Structured)+40)
	content := r.Content
	if len(content) == 0 {
		content = []byte("[]")
	}
	if version := req.version(); !hasLinks(version) {
		content = appendEach(nil, content, func(dst, block []byte, n int) []byte { return appendFitted(dst, block, version, n) })
	}
	b = appendValue(b, "content", content)
	if structured := bytes.TrimSpace(r.Structured); len(structured) > 0 && (req.era == modern || jsontext.IsObject(structured)) {
		b = appendValue(b, "structuredContent", structured)
	}
	return &result{members: b, revision: r.Revision}
}

func (req *request) failed(r *call.Request, e *call.Error, revision string) (*result, *fault) {
	req.retryAfter = e.RetryAfter
	return req.failure(r, e, revision)
}

// failure is the only place where the error of a call becomes MCP. An unknown
// item and a script's own JSON-RPC error are protocol errors. Any other failure
// of a tool is a result that a model can read (2026-07-28 server/tools, Error
// Handling); other kinds have no such result.
func (req *request) failure(r *call.Request, e *call.Error, revision string) (*result, *fault) {
	switch {
	case e.RPC != nil:
		return nil, req.scriptFault(e.RPC)
	case e.Required != nil && req.era == modern:
		return nil, missingCapability(e.Message, e.Required)
	case e.Code == call.ToolNotFound:
		return nil, req.notFound(r, e)
	case r.Kind != call.Tools:
		// The params or the server caused it (2026-07-28 server/prompts, Error
		// Handling).
		f := newFault(codeInternal, Served, e.Message)
		if e.Code == call.InvalidInput {
			f = invalidParams(errorText(e))
		}
		return nil, f.with(errorData(r.Caller, e))
	}
	b := append([]byte{}, `"content":[`...)
	b = appendTextBlock(b, errorText(e))
	if e.Code == call.InvalidInput && len(e.Schema) > 0 {
		b = appendTextBlock(append(b, ','), "The current input schema: "+string(appendRaw(nil, e.Schema)))
	}
	b = append(b, `],"isError":true`...)
	return &result{members: b, revision: revision, meta: appendValue(nil, keyError, errorData(r.Caller, e))}, nil
}

// missingCapability returns the fault of a modern call whose client lacks
// capabilities (2026-07-28 schema, MissingRequiredClientCapabilityError).
func missingCapability(message string, required []byte) *fault {
	data := append(appendValue([]byte{'{'}, "requiredCapabilities", required), '}')
	return newFault(codeMissingCapability, Malformed, message).with(data)
}

// notFound returns the fault of a call of an unknown item. For resources it
// names the URI, and has its own code in legacy revisions (2025-11-25
// server/resources, Error Handling).
func (req *request) notFound(r *call.Request, e *call.Error) *fault {
	data := errorData(r.Caller, e)
	if r.Kind != call.Resources {
		return invalidParams(e.Message).with(data)
	}
	f := invalidParams(e.Message).with(append(appendText(data[:len(data)-1], "uri", r.Name), '}'))
	if req.era == legacy {
		f.Code = codeResourceNotFound
	}
	return f
}

// inner returns the members of a JSON object, without the braces.
func inner(object []byte) []byte {
	object = bytes.TrimSpace(object)
	if !jsontext.IsObject(object) {
		return nil
	}
	line := appendRaw(nil, object)
	return line[1 : len(line)-1]
}

// scriptFault returns the error that a script chose. Modern clients interpret
// reserved codes as the specification defines them: a script may use the code
// of a missing capability, if it names the capability. Any other reserved code
// becomes an internal error (2026-07-28 basic/index, Error Codes).
func (req *request) scriptFault(e *call.RPCError) *fault {
	f := &fault{RPCError: *e}
	switch {
	case req.era != modern || !isReserved(e.Code):
	case e.Code == codeMissingCapability && jsontext.IsObject(jsontext.Get(e.Data, "requiredCapabilities")):
		f.refusal = Malformed
	default:
		f.Code = codeInternal
	}
	return f
}

// errorData encodes the error for programs, under the key "mcpd/error".
func errorData(caller identity.Caller, e *call.Error) []byte {
	b := appendText([]byte{'{'}, "code", string(e.Code))
	b = appendText(b, "message", e.Message)
	b = appendText(b, "request_id", caller.Agent.RequestID)
	b = appendValue(b, "details", e.DetailsJSON())
	if len(e.Schema) > 0 {
		b = appendValue(b, "schema", e.Schema)
	}
	b = appendOptional(b, "removed_in", e.RemovedIn)
	b = appendOptional(b, "trace", e.Trace)
	if len(e.Required) > 0 {
		b = appendValue(b, "required_capabilities", e.Required)
	}
	if e.RetryAfter > 0 {
		// Rounded up, so that a client that waits this long is not early.
		b = strconv.AppendInt(appendMember(b, "retry_after_ms"), int64((e.RetryAfter+time.Millisecond-1)/time.Millisecond), 10)
	}
	return append(b, '}')
}

// errorText returns the text for a model: the message, and for invalid
// arguments each violation that the message lacks, on its own line with its
// path.
func errorText(e *call.Error) string {
	if e.Code != call.InvalidInput {
		return e.Message
	}
	text := e.Message
	for _, v := range e.Violations {
		if !strings.Contains(e.Message, strings.TrimPrefix(v.Path+" "+v.Message, " ")) {
			text += fmt.Sprintf("\n%s: %s", cmp.Or(v.Path, "(arguments)"), v.Message)
		}
	}
	return text
}

func appendTextBlock(dst []byte, s string) []byte {
	return append(appendText(append(dst, `{"type":"text"`...), "text", s), '}')
}

// hasAudio reports whether the revision has audio content (2025-03-26 schema, AudioContent).
func hasAudio(version string) bool { return version >= version20250326 }

// hasLinks reports whether the revision has resource links (2025-06-18 schema, ResourceLink).
func hasLinks(version string) bool { return version >= version20250618 }

func (req *request) version() string {
	if req.era == modern || req.origin.session == nil {
		return newestModern
	}
	return req.origin.session.version
}

// appendFitted appends the n-th block of a result in the form of the revision.
func appendFitted(dst, block []byte, version string, n int) []byte {
	switch kind := string(jsontext.Unquote(jsontext.Get(block, "type"))); {
	case kind == "audio" && !hasAudio(version):
		return appendEmbeddedAudio(dst, block, n)
	case kind == "resource_link" && !hasLinks(version):
		return appendLinkText(dst, block)
	}
	return appendRaw(dst, block)
}

func appendEmbeddedAudio(dst, block []byte, n int) []byte {
	dst = append(appendText(append(dst, '{'), "type", "resource"), `,"resource":{`...)
	dst = appendText(dst, "uri", fmt.Sprintf("mcpd://audio/%d", n))
	dst = appendValue(dst, "mimeType", jsontext.Get(block, "mimeType"))
	dst = append(appendValue(dst, "blob", jsontext.Get(block, "data")), '}')
	return append(appendCommon(dst, block), '}')
}

func appendLinkText(dst, block []byte) []byte {
	name := jsontext.Unquote(jsontext.Get(block, "title"))
	if len(name) == 0 {
		name = jsontext.Unquote(jsontext.Get(block, "name"))
	}
	text := fmt.Sprintf("%s: %s", name, jsontext.Unquote(jsontext.Get(block, "uri")))
	if description := jsontext.Unquote(jsontext.Get(block, "description")); len(description) > 0 {
		text += "\n" + string(description)
	}
	dst = appendText(appendText(append(dst, '{'), "type", "text"), "text", text)
	return append(appendCommon(dst, block), '}')
}

// appendCommon appends the members that blocks of every type may have.
func appendCommon(dst, block []byte) []byte {
	for _, name := range []string{"annotations", "_meta"} {
		if value := jsontext.Get(block, name); value != nil {
			dst = appendValue(dst, name, value)
		}
	}
	return dst
}

// appendEach appends an array, with each element appended by fit, which gets
// its number, from 1. Any other value is appended unchanged.
func appendEach(dst, list []byte, fit func(dst, element []byte, n int) []byte) []byte {
	rest, ok := jsontext.Elements(list)
	if !ok {
		return appendRaw(dst, list)
	}
	dst = append(dst, '[')
	for n := 1; ; n++ {
		element, ok := rest.Element()
		if !ok {
			return append(dst, ']')
		}
		if n > 1 {
			dst = append(dst, ',')
		}
		dst = fit(dst, element, n)
	}
}

// fitMessages returns an object with its member "messages" fitted to the
// revision: fit appends the content of the n-th message.
func fitMessages(object []byte, fit func(dst, content []byte, n int) []byte) []byte {
	return fitMember(object, "messages", func(dst, list []byte) []byte {
		return appendEach(dst, list, func(dst, message []byte, n int) []byte {
			return append(dst, fitMember(message, "content", func(dst, content []byte) []byte { return fit(dst, content, n) })...)
		})
	})
}

// fitMember returns an object with one member replaced by what fit appends.
func fitMember(object []byte, replaced string, fit func(dst, value []byte) []byte) []byte {
	rest, ok := jsontext.Members(object)
	if !ok {
		return object
	}
	fitted := []byte{'{'}
	for {
		name, value, ok := rest.Member()
		if !ok {
			return append(fitted, '}')
		}
		fitted = appendMember(fitted, string(name))
		if string(name) == replaced {
			fitted = fit(fitted, value)
		} else {
			fitted = appendRaw(fitted, value)
		}
	}
}

// fitSampling returns the params of sampling/createMessage in the form of the
// revision. Sampling has no embedded resources, so audio becomes text.
func fitSampling(params []byte, version string) []byte {
	if hasAudio(version) {
		return params
	}
	return fitMessages(params, func(dst, content []byte, _ int) []byte {
		if len(content) > 0 && content[0] == '[' {
			return appendEach(dst, content, func(dst, block []byte, _ int) []byte { return appendSampled(dst, block) })
		}
		return appendSampled(dst, content)
	})
}

// appendSampled appends a block of a sampling message for a revision without
// audio.
func appendSampled(dst, block []byte) []byte {
	if string(jsontext.Unquote(jsontext.Get(block, "type"))) != "audio" {
		return appendRaw(dst, block)
	}
	note := fmt.Sprintf("[audio of type %s, which this protocol revision cannot carry]", jsontext.Unquote(jsontext.Get(block, "mimeType")))
	return append(appendText(appendText(append(dst, '{'), "type", "text"), "text", note), '}')
}
