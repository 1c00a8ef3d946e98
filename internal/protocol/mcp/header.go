package mcp

import (
	"encoding/base64"
	"math"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The headers that mirror the body of a modern request, in canonical form
// (2026-07-28 basic/transports/streamable-http, Request Metadata).
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

// canonical returns the canonical form of the end of a header's name.
func canonical(name string) string {
	return strings.TrimPrefix(textproto.CanonicalMIMEHeaderKey(headerParam+name), headerParam)
}

// mirrored returns the one value of a header. A header that is absent, or
// there twice, mirrors nothing.
func mirrored(h http.Header, name string) (value string, f *fault) {
	switch values := h[name]; len(values) {
	case 1:
		return values[0], nil
	case 0:
		return "", mismatch("the header " + name + " is missing")
	default:
		return "", mismatch("the header " + name + " is there more than once")
	}
}

// checkHeader holds a header to the value in the body.
func checkHeader(h http.Header, name, body string) *fault {
	value, f := mirrored(h, name)
	if f != nil {
		return f
	}
	if value != body {
		return mismatch("the header " + name + " does not match the body")
	}
	return nil
}

// decoded returns the one value of a header that may be encoded.
func decoded(h http.Header, name string) (string, *fault) {
	value, f := mirrored(h, name)
	if f != nil {
		return "", f
	}
	text, ok := decodeHeader(value)
	if !ok {
		return "", mismatch("the header " + name + " is not encoded as it must be")
	}
	return text, nil
}

// checkName compares Mcp-Name with the name in the body.
func checkName(h http.Header, body []byte) *fault {
	name, f := decoded(h, headerName)
	if f == nil && name != string(body) {
		f = mismatch("the header " + headerName + " does not match the body")
	}
	return f
}

// check compares the header of an annotated argument with the arguments.
func (m *mirror) check(h http.Header, arguments []byte) *fault {
	body := arguments
	for _, name := range m.path {
		body = jsontext.Get(body, name)
	}
	if jsontext.IsNull(body) || jsontext.IsObject(body) || body[0] == '[' {
		if len(h[m.header]) > 0 {
			return mismatch("the header " + m.header + " repeats an argument that is not there")
		}
		return nil
	}
	value, f := decoded(h, m.header)
	if f == nil && !sameValue(value, body) {
		f = mismatch("the header " + m.header + " does not match the body")
	}
	return f
}

// sameValue reports whether a header says what a JSON scalar says; numbers
// are compared as such, so that 42.0 is 42.
func sameValue(header string, body []byte) bool {
	switch body[0] {
	case '"':
		return header == string(jsontext.Unquote(body))
	case 't', 'f':
		return header == string(body)
	}
	a, okA := number(header)
	b, okB := number(string(body))
	return okA && okB && a == b
}

// maxSafe is the greatest integer up to which a float64 tells all integers
// apart; annotated integers stay within it.
const maxSafe = 1<<53 - 1

// number reads a decimal number that is no larger than maxSafe.
func number(s string) (float64, bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune("+-.eE", r) }) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && math.Abs(f) <= maxSafe
}

// decodeHeader returns what a header value stands for: a value between
// =?base64? and ?= is encoded, any other stands for itself (Value Encoding).
func decodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if encoded, closed := strings.CutSuffix(encoded, "?="); ok && closed {
		decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
		return string(decoded), err == nil && !strings.ContainsAny(encoded, "\r\n")
	}
	outside := func(r rune) bool { return (r < ' ' || r > '~') && r != '\t' }
	return value, strings.IndexFunc(value, outside) < 0
}

func mismatch(message string) *fault {
	return newFault(codeHeaderMismatch, Malformed, "header mismatch: "+message)
}
