package mcp

import (
	"bytes"
	"strconv"

	"github.com/mcpd/mcpd/identity"
)

// succeeded encodes the success of a tool (2026-07-28 server/tools, Tool
// Result). Legacy revisions know structured content that is an object alone.
func (c *call) succeeded(r Response) *result {
	b := make([]byte, 0, len(r.Content)+len(r.Structured)+40)
	content := r.Content
	if len(content) == 0 {
		content = []byte("[]")
	}
	b = appendValue(b, "content", content)
	if structured := bytes.TrimSpace(r.Structured); len(structured) > 0 && (c.era == modern || isObject(structured)) {
		b = appendValue(b, "structuredContent", structured)
	}
	return &result{members: b, revision: r.Revision}
}

// failed is the one place where the error of a call becomes MCP: a tool that
// does not exist, and a script's own JSON-RPC error, are errors of the
// protocol; everything else is a result that a model can read and learn from
// (2026-07-28 server/tools, Error Handling).
func (c *call) failed(caller identity.Caller, e *CallError, revision string) (*result, *fault) {
	switch {
	case e.RPC != nil:
		return nil, c.scriptFault(e.RPC)
	case e.Code == ToolNotFound:
		return nil, invalidParams(e.Message).with(errorData(caller, e))
	}
	b := append([]byte{}, `"content":[`...)
	b = appendTextBlock(b, errorText(e))
	if e.Code == InvalidInput && len(e.Schema) > 0 {
		b = appendTextBlock(append(b, ','), "The current input schema: "+string(appendRaw(nil, e.Schema)))
	}
	b = append(b, `],"isError":true`...)
	return &result{members: b, revision: revision, meta: appendValue(nil, keyError, errorData(caller, e))}, nil
}

// scriptFault passes on the error that a script chose. Codes that modern
// revisions give a meaning to keep it on transports that have a status of their own.
func (c *call) scriptFault(e *RPCError) *fault {
	f := &fault{RPCError: *e}
	if c.era == modern && e.Code <= codeHeaderMismatch && e.Code >= codeUnsupportedVersion {
		f.refusal = Malformed
	}
	return f
}

// errorData encodes the error for machines, under the key "mcpd/error".
func errorData(caller identity.Caller, e *CallError) []byte {
	b := appendText([]byte{'{'}, "code", string(e.Code))
	b = appendText(b, "message", e.Message)
	b = appendText(b, "request_id", caller.Agent.RequestID)
	b = appendValue(b, "details", e.Details)
	if len(e.Schema) > 0 {
		b = appendValue(b, "schema", e.Schema)
	}
	if e.RetryAfter > 0 {
		b = strconv.AppendInt(appendMember(b, "retry_after_ms"), e.RetryAfter.Milliseconds(), 10)
	}
	return append(b, '}')
}

// errorText returns what a model reads: the message, and for bad arguments
// every violation on a line of its own, with its path.
func errorText(e *CallError) string {
	if e.Code != InvalidInput {
		return e.Message
	}
	violations, ok := elements(e.Details)
	if !ok {
		return e.Message
	}
	text := append([]byte{}, e.Message...)
	for {
		v, ok := violations.element()
		if !ok {
			return string(text)
		}
		path := unquoted(member(v, "path"))
		if len(path) == 0 {
			path = []byte("(arguments)")
		}
		text = append(append(append(text, "\n"...), path...), ": "...)
		text = append(text, unquoted(member(v, "message"))...)
	}
}

func appendTextBlock(dst []byte, s string) []byte {
	return append(appendText(append(dst, `{"type":"text"`...), "text", s), '}')
}
