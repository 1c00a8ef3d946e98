package mcp

import (
	"bytes"
	"io"
	"strconv"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Frame is one JSON-RPC message on one line, ready to be sent. Its pieces are
// kept apart so that a list which many clients ask for is encoded once and
// never copied. The zero Frame is no message.
type Frame struct{ head, body, tail []byte }

// IsZero reports whether there is no message.
func (f Frame) IsZero() bool { return len(f.head) == 0 }

// Len returns the size of the message in bytes.
func (f Frame) Len() int { return len(f.head) + len(f.body) + len(f.tail) }

// WriteTo writes the message, without a line break behind it.
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

// id returns the id of a response, as it was sent; nil where there is none, and for the
// answer to a batch.
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

// notification returns a notification. params are the members of its params object.
func notification(method string, params []byte) Frame {
	head := make([]byte, 0, len(openFrame)+len(method)+32)
	head = append(appendText(append(head, openFrame...), "method", method), `,"params":{`...)
	return Frame{head: head, body: params, tail: []byte("}}")}
}

// errorFrame returns an error response (JSON-RPC 2.0 section 5.1). An id that
// could not be read is left out (MCP basic/index, Error Responses).
func errorFrame(id []byte, e *call.RPCError) Frame {
	b := append(make([]byte, 0, 128+len(e.Message)+len(e.Data)), openFrame...)
	if len(id) > 0 {
		b = appendValue(b, "id", id)
	}
	b = appendError(append(b, `,"error":`...), e)
	return Frame{head: append(b, '}')}
}

// appendError appends an error object.
func appendError(dst []byte, e *call.RPCError) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(e.Code), 10)
	dst = appendText(dst, "message", e.Message)
	if len(e.Data) > 0 {
		dst = appendValue(dst, "data", e.Data)
	}
	return append(dst, '}')
}

// Decline answers a text of a client for a server that could not start: each request
// in it gets an error with the message why. The answer is empty when nobody waits for one.
// initialized reports whether a request was the first of a session, after which no client
// sends anything else.
func Decline(text []byte, why string) (answer []byte, initialized bool) {
	parsed, f := parse(text, jsonguard.Client())
	if f != nil {
		return errorFrame(nil, &f.RPCError).Append(nil), false
	}
	for i := range parsed.pending {
		m := &parsed.pending[i].message
		e := &call.RPCError{Code: codeInternal, Message: why}
		switch {
		case m.bad != nil && !m.isOdd():
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
