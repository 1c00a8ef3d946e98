package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// headerRequestID identifies the request in its response and in logs.
const headerRequestID = "X-Request-Id"

// writeTimeout is the time for a client to read 64 KiB of a response.
const writeTimeout = 30 * time.Second

// responder writes the response to one request.
type responder struct {
	http.ResponseWriter
	budget *httpguard.Budget // for unread responses; nil for no limit
	client workqueue.Client  // the client that the response counts for, once it is known
}

func writeResult(w *responder, r call.Result) {
	value := r.Value
	if value == nil {
		value = json.RawMessage("null")
	}
	if r.Rich {
		write(w, http.StatusOK, []byte(`{"result":`), value, []byte(`,"content":`), r.Content, []byte("}"))
		return
	}
	write(w, http.StatusOK, []byte(`{"result":`), value, []byte("}"))
}

// writeError writes the error of a call. It is the only place that maps errors
// to HTTP statuses for REST.
func writeError(w *responder, e *call.Error) {
	status := http.StatusInternalServerError
	var details json.RawMessage
	switch {
	case e.Overloaded:
		status = http.StatusServiceUnavailable
	case e.Limited:
		status = http.StatusTooManyRequests
	case e.Code == call.InvalidInput:
		status, details = http.StatusBadRequest, e.DetailsJSON()
	case e.Code == call.ToolNotFound:
		status = http.StatusNotFound
	case e.Code == call.PolicyDenied:
		status = http.StatusForbidden
	case e.Code == call.Timeout:
		status = http.StatusGatewayTimeout
	}
	if e.Overloaded || e.Limited {
		httpheader.SetRetryAfter(w.Header(), e.RetryAfter)
	}
	write(w, status, encodeError(e.Code, e.Message, details, e.Trace))
}

// refuse rejects an invalid request before any call.
func refuse(w *responder, status int, message string) {
	write(w, status, encodeError(call.InvalidInput, message, nil, ""))
}

// encodeError returns the error JSON of the RFC (section 14): two members, and
// the optional details and trace.
func encodeError(code call.Code, message string, details json.RawMessage, trace string) []byte {
	var b bytes.Buffer
	text := func(member, value string) {
		b.WriteString(member)
		quoted, _ := jsontext.Marshal(value) // a string always encodes
		b.Write(quoted)
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

// setHeader sets a header; the name must be in canonical form.
func setHeader(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }

// errNoRoom replaces a response that has no room.
var errNoRoom = call.Error{
	Code: call.ExecutionError, Overloaded: true, RetryAfter: time.Second,
	Message: "the response was dropped, because too many responses are unread; try again in a second",
}

// write writes a whole response from pieces. A long response holds budget until
// the client has read it, and has a timeout for each part.
func write(w *responder, status int, pieces ...[]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	var to io.Writer = w
	if size > httpguard.Buffered {
		writer := httpguard.NewBudgetWriter(w.ResponseWriter, w.budget, w.client, writeTimeout)
		defer writer.Close()
		if !writer.Take(size) {
			delete(w.Header(), "Etag")
			delete(w.Header(), "Cache-Control")
			writeError(w, &errNoRoom)
			return
		}
		writer.RenewDeadline()
		to = writer
	}
	setHeader(w, "Content-Type", "application/json")
	setHeader(w, "Content-Length", strconv.Itoa(size))
	setHeader(w, "X-Content-Type-Options", "nosniff")
	if w.Header()["Cache-Control"] == nil {
		setHeader(w, "Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	for _, p := range pieces {
		if _, err := to.Write(p); err != nil {
			return // a client that is gone needs no response
		}
	}
}
