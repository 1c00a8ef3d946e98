package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/mcp"
	"github.com/mcpd/mcpd/internal/retryafter"
)

// headerRequestID names the request in its answer, as logs do.
const headerRequestID = "X-Request-Id"

// writeTime is how long a client may take to receive an answer.
const writeTime = 30 * time.Second

// writeResult answers with what a tool returned.
func writeResult(w http.ResponseWriter, r mcp.Response) {
	value := r.Value
	if value == nil {
		value = json.RawMessage("null")
	}
	body := make([]byte, 0, len(`{"result":,"content":}`)+len(value)+len(r.Content))
	body = append(append(body, `{"result":`...), value...)
	if r.Rich {
		body = append(append(body, `,"content":`...), r.Content...)
	}
	write(w, http.StatusOK, append(body, '}'))
}

// writeError answers with the error of a call. It is the only place that
// knows which status an error has on this wire.
func writeError(w http.ResponseWriter, e *mcp.CallError) {
	status := http.StatusInternalServerError
	var details json.RawMessage
	switch {
	case e.Overloaded:
		status = http.StatusServiceUnavailable
	case e.Limited:
		status = http.StatusTooManyRequests
	case e.Code == mcp.InvalidInput:
		status, details = http.StatusBadRequest, e.Details
	case e.Code == mcp.ToolNotFound:
		status = http.StatusNotFound
	case e.Code == mcp.PolicyDenied:
		status = http.StatusForbidden
	case e.Code == mcp.Timeout:
		status = http.StatusGatewayTimeout
	}
	if e.Overloaded || e.Limited {
		retryafter.Set(w.Header(), e.RetryAfter)
	}
	write(w, status, encodeError(e.Code, e.Message, details, e.Trace))
}

// refuse answers a request that is none for a tool.
func refuse(w http.ResponseWriter, status int, message string) {
	write(w, status, encodeError(mcp.InvalidInput, message, nil, ""))
}

// encodeError returns the RFC's error JSON (section 14): two members, and
// details and a trace where there are some.
func encodeError(code mcp.Code, message string, details json.RawMessage, trace string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	text := func(member, value string) {
		b.WriteString(member)
		_ = e.Encode(value) // a string always encodes
		b.Truncate(b.Len() - len("\n"))
	}
	b.WriteString(`{"error":"` + string(code) + `"`)
	text(`,"message":`, message)
	if details != nil {
		b.WriteString(`,"details":`)
		b.Write(details)
	}
	if trace != "" {
		text(`,"trace":`, trace)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// callError returns the error of a claim or a body for writeError.
func callError(err error) *mcp.CallError {
	var e *mcp.CallError
	if errors.As(err, &e) {
		return e
	}
	return &mcp.CallError{Code: mcp.InvalidInput, Message: err.Error()}
}

// setHeader sets a header whose name is in canonical form.
func setHeader(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }

// buffered is how much net/http keeps back until the handler returns, in bytes.
const buffered = 2 << 10

// write sends a whole answer. A long one does not wait for its client for ever.
func write(w http.ResponseWriter, status int, body []byte) {
	setHeader(w, "Content-Type", "application/json")
	setHeader(w, "Content-Length", strconv.Itoa(len(body)))
	setHeader(w, "X-Content-Type-Options", "nosniff")
	if w.Header()["Cache-Control"] == nil {
		setHeader(w, "Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	if len(body) > buffered {
		// Where the writer knows no deadlines there is no connection to hold up.
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	}
	_, _ = w.Write(body) // a client that is gone needs no answer
}
