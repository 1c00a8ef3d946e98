package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// execute answers POST /mcp/execute.
func (h *handler) execute(w *responder, r *http.Request, headers *headers) {
	if !isPlainJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON, with Content-Type: application/json and without Content-Encoding")
		return
	}
	caller, pass, ok := h.caller(w, r, headers)
	if !ok {
		return
	}
	text, no := h.read(w, r)
	if no == nil {
		no = judge(jsonguard.Check(text, h.options.Limits))
	}
	if no != nil {
		no.write(w)
		return
	}
	if err := pass.Holds(); err != nil {
		h.turnAway(w, r, err)
		return
	}
	sent, err := decode(text)
	if err != nil {
		writeError(w, err)
		return
	}
	can, resume, err := sent.asked()
	if err != nil {
		writeError(w, err)
		return
	}
	request := call.Request{Name: sent.tool, Arguments: sent.arguments, Trace: mcp.TraceOf(r.Header), Can: can, Resume: resume}
	claim := headers.AgentClaim // nothing when it is refused
	if request.Declined = headers.refused; request.Declined == nil && sent.agent != nil {
		claim, request.Declined = mcp.ClaimOf(sent.agent, claim)
	}
	if !h.bind(w, r, &caller, claim, headers.id, sent.tool) {
		return
	}
	setHeader(w, headerRequestID, caller.Agent.RequestID)
	request.Caller = caller
	response, _ := h.backend.Call(r.Context(), request)
	if response.Err == nil && response.Ask != nil {
		response.Err = mcp.MayAsk(&request, response.Ask)
	}
	if err := pass.Holds(); err != nil {
		h.turnAway(w, r, err)
		return
	}
	switch {
	case response.Err != nil:
		writeError(w, response.Err)
	case response.Ask != nil:
		writeAsk(w, response.Ask)
	default:
		writeResult(w, response)
	}
}

// isPlainJSON reports whether the headers announce JSON that is not encoded.
func isPlainJSON(h http.Header) bool {
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return false
	}
	kind := h.Get("Content-Type")
	if kind == "application/json" {
		return true // without the work of parsing
	}
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && media == "application/json"
}

// rejection is why a body is not read any further.
type rejection struct {
	status  int
	message string
}

func (r *rejection) write(w *responder) {
	if r.status == http.StatusServiceUnavailable {
		writeError(w, &call.Error{Code: call.ExecutionError, Message: r.message, Overloaded: true})
		return
	}
	refuse(w, r.status, r.message)
}

// trusted is how much memory a body gets on its word alone, in bytes.
const trusted = 64 << 10

// read reads the body.
func (h *handler) read(w *responder, r *http.Request) ([]byte, *rejection) {
	limit := int64(h.options.Limits.Bytes)
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), limit, trusted)) + bytes.MinRead)
	_, err := b.ReadFrom(http.MaxBytesReader(w.ResponseWriter, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return b.Bytes(), nil
	case errors.As(err, &over):
		return nil, &rejection{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is longer than %d bytes", over.Limit)}
	case errors.Is(err, httpguard.ErrCrowded):
		return nil, &rejection{http.StatusServiceUnavailable, "the server has no room for the body; try again in a second"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &rejection{http.StatusRequestTimeout, "the body did not arrive in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &rejection{http.StatusBadRequest, "the body ended early"}
	}
	return nil, &rejection{http.StatusBadRequest, "the body could not be read"}
}

// judge says what an error of the JSON gate is on this wire.
func judge(err error) *rejection {
	if err == nil {
		return nil
	}
	status := http.StatusBadRequest
	var refused *jsonguard.Error
	if errors.As(err, &refused) && refused.Kind == jsonguard.TooLarge {
		status = http.StatusRequestEntityTooLarge
	}
	return &rejection{status, err.Error()}
}

// body is the decoded body of a request.
type body struct {
	tool      string
	arguments json.RawMessage // nil when there are none
	agent     json.RawMessage // nil when it claims none
	// can is what its client may be asked, and state and answers are of what it was asked;
	// each is nil when the body does not say.
	can, state, answers json.RawMessage
}
