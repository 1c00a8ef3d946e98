package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Frame is one JSON-RPC message on one line, ready to send. Its pieces are
// separate, so that a list requested by many clients is encoded once and never
// copied. The zero Frame is no message.
type Frame struct{ head, body, tail []byte }

// IsZero reports whether there is no message.
func (f Frame) IsZero() bool { return len(f.head) == 0 }

// Len returns the size of the message in bytes.
func (f Frame) Len() int { return len(f.head) + len(f.body) + len(f.tail) }

// WriteTo writes the message without a trailing line break.
func (f Frame) WriteTo(w io.Writer) (n int64, err error) {
	for _, piece := range [...][]byte{f.head, f.body, f.tail} {
		if len(piece) == 0 {
			continue
		}
		m, err := w.Write(piece)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Append appends the message to dst.
func (f Frame) Append(dst []byte) []byte {
	return append(append(append(dst, f.head...), f.body...), f.tail...)
}

// String returns the message.
func (f Frame) String() string { return string(f.Append(nil)) }

const openFrame = `{"jsonrpc":"2.0"`

// id returns the id of a response, as it was sent. It returns nil if there is
// none, and for the response to a batch.
func (f Frame) id() []byte {
	rest, ok := bytes.CutPrefix(f.head, []byte(openFrame+`,"id":`))
	if !ok || len(rest) == 0 {
		return nil
	}
	end := 0
	if rest[0] == '"' {
		for end = 1; end < len(rest) && rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		end++
	} else {
		end = bytes.IndexByte(rest, ',')
	}
	if end < 0 || end > len(rest) {
		return nil
	}
	return rest[:end]
}

// notification returns a notification with the given members of params.
func notification(method string, params []byte) Frame {
	head := make([]byte, 0, len(openFrame)+len(method)+32)
	head = append(appendText(append(head, openFrame...), "method", method), `,"params":{`...)
	return Frame{head: head, body: params, tail: []byte("}}")}
}

// errorFrame returns an error response (JSON-RPC 2.0 section 5.1). Without an
// id, because it could not be read, it omits the member (MCP basic/index, Error
// Responses).
func errorFrame(id []byte, e *call.RPCError) Frame {
	b := append(make([]byte, 0, 128+len(e.Message)+len(e.Data)), openFrame...)
	if len(id) > 0 {
		b = appendValue(b, "id", id)
	}
	b = appendError(append(b, `,"error":`...), e)
	return Frame{head: append(b, '}')}
}

func appendError(dst []byte, e *call.RPCError) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(e.Code), 10)
	dst = appendText(dst, "message", e.Message)
	if len(e.Data) > 0 {
		dst = appendValue(dst, "data", e.Data)
	}
	return append(dst, '}')
}

// Decline answers a client's text for a server that could not start: each
// request gets an error with the message why. The answer is empty if the text
// has no request. initialized reports whether a request was initialize: if it
// fails, no client sends more.
func Decline(text []byte, why string) (answer []byte, initialized bool) {
	parsed, f := parse(text, jsonguard.Client())
	if f != nil {
		return errorFrame(nil, &f.RPCError).Append(nil), false
	}
	for i := range parsed.pending {
		m := &parsed.pending[i].message
		e := &call.RPCError{Code: codeInternal, Message: why}
		switch {
		case m.bad != nil && !m.hasBadParams():
			e = &m.bad.RPCError
		case m.isResponse() || m.isNotification():
			continue
		}
		initialized = initialized || m.method == "initialize"
		if len(answer) > 0 {
			answer = append(answer, ',')
		}
		answer = errorFrame(m.id, e).Append(answer)
	}
	if parsed.isBatch && len(answer) > 0 {
		answer = append(append([]byte{'['}, answer...), ']')
	}
	return answer, initialized
}

// appendMember appends the name of a member, after a comma unless it is the
// first of the object.
func appendMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsontext.AppendString(dst, name), ':')
}

func appendText(dst []byte, name, value string) []byte {
	return jsontext.AppendString(appendMember(dst, name), value)
}

func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, name, value)
}

// appendTexts appends a member with a list of strings, unless the list is
// empty.
func appendTexts(dst []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = append(appendMember(dst, name), '[')
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(dst, value)
	}
	return append(dst, ']')
}

// appendValue appends a member with a JSON value, or null if value is empty.
func appendValue(dst []byte, name string, value []byte) []byte {
	return appendRaw(appendMember(dst, name), value)
}

// appendRaw appends JSON on one line, even if its author used several: stdio
// frames and SSE events end at a line break.
func appendRaw(dst, value []byte) []byte {
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	var line bytes.Buffer
	if json.Compact(&line, value) != nil {
		return append(dst, "null"...)
	}
	return append(dst, line.Bytes()...)
}

// The codes of JSON-RPC 2.0 (section 5.1) and of MCP (2026-07-28 basic/index,
// Error Codes) that the server itself sends.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeResourceNotFound   = -32002 // legacy revisions only
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// isReserved reports whether modern revisions define, reserve or forbid the
// code.
func isReserved(code int) bool {
	return code == codeResourceNotFound || -32099 <= code && code <= codeHeaderMismatch
}

// Refusal is the reason why the protocol rejected a message before serving it,
// so that a transport can choose its status. Results, and errors while a
// request is served, are [Served].
type Refusal uint8

const (
	// Served: the message was valid; its reply is a result or an error of serving
	// it.
	Served Refusal = iota
	// Malformed: the message or its metadata breaks the protocol.
	Malformed
	// TooLarge: the message is longer than the limit.
	TooLarge
	// UnknownMethod: the client's revision has no such method.
	UnknownMethod
	// UnknownSession: the session does not exist, or belongs to another
	// principal.
	UnknownSession
	// Forbidden: the client's credential is bound to another agent than it
	// claims.
	Forbidden
	// Unavailable: the server is shutting down or at a limit; a retry may
	// succeed.
	Unavailable
)

// fault is a protocol error, as opposed to the failure of a call.
type fault struct {
	call.RPCError
	refusal Refusal
}

func newFault(code int, refusal Refusal, message string) *fault {
	return &fault{call.RPCError{Code: code, Message: message}, refusal}
}

func (f *fault) with(data []byte) *fault {
	f.Data = data
	return f
}

// invalidParams returns the fault for params that the method does not accept.
func invalidParams(message string) *fault { return newFault(codeInvalidParams, Served, message) }

// malformed returns the fault for a message that is not valid JSON-RPC.
func malformed(message string) *fault { return newFault(codeInvalidRequest, Malformed, message) }
