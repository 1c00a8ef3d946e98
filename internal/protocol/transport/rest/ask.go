package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// asked reads what the client says that it can be asked, and what it has answered; nil when
// that is nothing.
func (c *body) asked() (can call.Capabilities, resume *call.Resume, err *call.Error) {
	if can, err = capabilities(c.can); err != nil || c.state == nil && c.answers == nil {
		return can, nil, err
	}
	resume = &call.Resume{}
	if resume.State, _ = jsontext.Text(c.state); resume.State == "" {
		return can, nil, bad("state", "must be a string that is not empty")
	}
	if c.answers == nil {
		return can, resume, nil
	}
	if json.Unmarshal(c.answers, &resume.Responses) != nil {
		return can, nil, bad("answers", "must be an object")
	}
	for _, answer := range resume.Responses {
		if answer[0] != '{' {
			return can, nil, bad("answers", "must hold objects")
		}
	}
	return can, resume, nil
}

// capabilities reads the member "can".
func capabilities(list json.RawMessage) (can call.Capabilities, err *call.Error) {
	var kinds []string
	if list != nil && json.Unmarshal(list, &kinds) != nil {
		return can, bad("can", "must be a list of strings")
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
			return can, bad("can", "holds an unknown word; it takes approval, form, url, sample and roots")
		}
	}
	return can, nil
}

// askJSON is a call that waits for its client.
type askJSON struct {
	Requests []requestJSON `json:"requests"`
	State    string        `json:"state"`
	WaitMS   int64         `json:"wait_ms,omitempty"`
}

// requestJSON is one thing that the client is asked, as MCP has it.
type requestJSON struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// writeAsk answers with what the call wants to know. The client calls again, with the same
// arguments, the state and its answers.
func writeAsk(w *responder, a *call.Ask) {
	made := askJSON{Requests: make([]requestJSON, len(a.Requests)), State: a.State, WaitMS: int64(a.Wait / time.Millisecond)}
	for i, r := range a.Requests {
		made.Requests[i] = requestJSON{r.Key, r.Method, r.Params}
	}
	body, err := json.Marshal(map[string]any{"ask": made})
	if err != nil {
		writeError(w, &call.Error{Code: call.ExecutionError, Message: "what the call asks cannot be encoded"})
		return
	}
	write(w, http.StatusOK, body)
}
