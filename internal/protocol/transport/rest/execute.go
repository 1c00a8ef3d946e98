package rest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// execute answers POST /mcp/execute.
func (h *handler) execute(w *responder, r *http.Request, headers *headers) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" || !httpguard.IsJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON, with Content-Type: application/json and without Content-Encoding")
		return
	}
	caller, pass, ok := h.caller(w, r, headers)
	if !ok {
		return
	}
	text, status, reason := httpstream.ReadText(r, h.options.Limits.Bytes)
	switch {
	case status == http.StatusServiceUnavailable:
		writeError(w, &call.Error{Code: call.ExecutionError, Message: reason, Overloaded: true})
		return
	case status != 0:
		refuse(w, status, reason)
		return
	}
	if err := jsonguard.Check(text, h.options.Limits); err != nil {
		status = http.StatusBadRequest
		if refused, ok := errors.AsType[*jsonguard.Error](err); ok && refused.Kind == jsonguard.TooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, status, err.Error())
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

// body is the decoded body of a request.
type body struct {
	tool      string
	arguments json.RawMessage // nil when there are none
	agent     json.RawMessage // nil when it claims none
	// can is what its client may be asked, and state and answers are of what it was asked;
	// each is nil when the body does not say.
	can, state, answers json.RawMessage
}
