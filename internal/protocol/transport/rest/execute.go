package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

func (h *handler) execute(w *responder, r *http.Request, headers *claimHeaders) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" || !httpguard.IsJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be JSON, with Content-Type: application/json and without Content-Encoding")
		return
	}
	caller, access, ok := h.caller(w, r, headers)
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
		if guardErr, ok := errors.AsType[*jsonguard.Error](err); ok && guardErr.Kind == jsonguard.TooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, status, err.Error())
		return
	}
	if err := access.Check(); err != nil {
		h.writeAuthError(w, r, err)
		return
	}
	sent, err := decode(text)
	if err != nil {
		writeError(w, err)
		return
	}
	can, resume, err := sent.inputs()
	if err != nil {
		writeError(w, err)
		return
	}
	request := call.Request{Name: sent.tool, Arguments: sent.arguments, Trace: mcp.TraceOf(r.Header), Can: can, Resume: resume}
	claim := headers.AgentClaim // empty if it is invalid
	if request.RejectErr = headers.refused; request.RejectErr == nil && sent.agent != nil {
		claim, request.RejectErr = mcp.ClaimOf(sent.agent, claim)
	}
	if !h.bind(w, r, &caller, claim, headers.id, sent.tool) {
		return
	}
	setHeader(w, headerRequestID, caller.Agent.RequestID)
	request.Caller = caller
	response, _ := h.backend.Call(r.Context(), request)
	if response.Err == nil && response.Ask != nil {
		response.Err = mcp.CheckAsk(&request, response.Ask)
	}
	if err := access.Check(); err != nil {
		h.writeAuthError(w, r, err)
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
	arguments json.RawMessage // nil for none
	agent     json.RawMessage // nil for no claim
	// can lists the input that the client supports; state and answers respond to
	// an earlier ask. Each is nil if absent.
	can, state, answers json.RawMessage
}

// decode reads {"tool","arguments","agent"} from a body that has passed the
// JSON guard, and {"can","state","answers"} of a client that supports input.
// Names are case-sensitive, because decoders differ in other matching.
func decode(raw []byte) (body, *call.Error) {
	object, ok := jsontext.Members(raw)
	if !ok {
		return body{}, invalidInput("body", "must be an object")
	}
	var c body
	hasTool := false
	for {
		name, value, ok := object.Member()
		if !ok {
			break
		}
		switch string(name) {
		case "tool":
			if c.tool, hasTool = jsontext.Text(value); !hasTool {
				return body{}, invalidInput("tool", "must be a string")
			}
		case "arguments":
			c.arguments = nonNull(value)
		case "agent":
			c.agent = nonNull(value)
		case "can":
			c.can = nonNull(value)
		case "state":
			c.state = nonNull(value)
		case "answers":
			c.answers = nonNull(value)
		default:
			return body{}, invalidInput("body", "has an unknown member; it takes tool, arguments and agent")
		}
	}
	if !hasTool {
		return body{}, invalidInput("tool", "is required")
	}
	return c, nil
}

func nonNull(value []byte) json.RawMessage {
	if jsontext.IsNull(value) {
		return nil
	}
	return value
}

func invalidInput(path, rule string) *call.Error {
	return &call.Error{Code: call.InvalidInput, Message: path + " " + rule, Violations: []call.Violation{{Path: path, Message: rule}}}
}

// inputs reads the client's capabilities and its responses to an ask; resume is
// nil for none.
func (b *body) inputs() (can call.Capabilities, resume *call.Resume, err *call.Error) {
	if can, err = capabilities(b.can); err != nil || b.state == nil && b.answers == nil {
		return can, nil, err
	}
	resume = &call.Resume{}
	if resume.State, _ = jsontext.Text(b.state); resume.State == "" {
		return can, nil, invalidInput("state", "must be a string that is not empty")
	}
	if b.answers == nil {
		return can, resume, nil
	}
	if json.Unmarshal(b.answers, &resume.Responses) != nil {
		return can, nil, invalidInput("answers", "must be an object")
	}
	for _, answer := range resume.Responses {
		if answer[0] != '{' {
			return can, nil, invalidInput("answers", "must hold objects")
		}
	}
	return can, resume, nil
}

func capabilities(list json.RawMessage) (can call.Capabilities, err *call.Error) {
	var kinds []string
	if list != nil && json.Unmarshal(list, &kinds) != nil {
		return can, invalidInput("can", "must be a list of strings")
	}
	can.NoApproval = len(kinds) > 0
	for _, kind := range kinds {
		switch kind {
		case "approval":
			can.Form, can.NoApproval = true, false
		case "form":
			can.Form = true
		case "url":
			can.URL = true
		case "sample":
			can.Sample = true
		case "roots":
			can.Roots = true
		default:
			return can, invalidInput("can", "holds an unknown word; it takes approval, form, url, sample and roots")
		}
	}
	return can, nil
}

// askJSON is the response for a call that waits for client input.
type askJSON struct {
	Requests []requestJSON `json:"requests"`
	State    string        `json:"state"`
	WaitMS   int64         `json:"wait_ms,omitempty"`
}

// requestJSON is one input request, in the form of MCP.
type requestJSON struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// writeAsk writes the input requests of the call. The client repeats the call
// with the same arguments, the state and its answers.
func writeAsk(w *responder, a *call.Ask) {
	ask := askJSON{Requests: make([]requestJSON, len(a.Requests)), State: a.State, WaitMS: int64(a.Wait / time.Millisecond)}
	for i, r := range a.Requests {
		ask.Requests[i] = requestJSON{r.Key, r.Method, r.Params}
	}
	body, err := json.Marshal(map[string]any{"ask": ask})
	if err != nil {
		writeError(w, &call.Error{Code: call.ExecutionError, Message: "the input requests cannot be encoded"})
		return
	}
	write(w, http.StatusOK, body)
}
