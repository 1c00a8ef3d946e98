package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// waiting is what is needed to go on with a task that waits for its client.
type suspended struct {
	Call  storedCall `json:"body"`
	State string     `json:"state"`
	// Until is when the client must have answered, Wait how long it had.
	Until time.Time     `json:"until"`
	Wait  time.Duration `json:"wait"`
	// Keys are the keys of the call, by those that the client knows.
	Keys map[string]string `json:"keys"`
	// Answers are what the client has answered, by the keys of the call.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	// Used are all keys that the client has seen.
	Used []string `json:"used"`
}

// keptCall is what a task keeps of its call beside the name of the tool.
type storedCall struct {
	Arguments json.RawMessage   `json:"arguments,omitempty"`
	Can       call.Capabilities `json:"can"`
}

// unused returns the key, or one like it that the client has not seen (SEP-2663,
// Task Update Requests): a body may ask under the same key again.
func (w *suspended) freshKey(key string) string {
	wanted := key
	for n := 2; slices.Contains(w.Used, key); n++ {
		key = wanted + "-" + strconv.Itoa(n)
	}
	return key
}

// store writes what is open, and what the task goes on with, into a task.
func (w *suspended) store(s *state.Task, open []call.AskRequest) (err error) {
	if s.Requests, err = json.Marshal(open); err == nil {
		s.Held, err = json.Marshal(w)
	}
	if err != nil {
		return fmt.Errorf("encode what a task waits for: %w", err)
	}
	return nil
}

func decodeSuspended(s state.Task) (w suspended, err error) {
	if err := json.Unmarshal(s.Held, &w); err != nil {
		return w, fmt.Errorf("read what a task goes on with: %w", err)
	}
	return w, nil
}

// openOf returns what a task has asked and its client has not answered.
func openRequests(s state.Task) (open []call.AskRequest, err error) {
	if s.Status != state.InputRequired {
		return nil, nil
	}
	if err := json.Unmarshal(s.Requests, &open); err != nil {
		return nil, fmt.Errorf("read what a task asks: %w", err)
	}
	return open, nil
}

// shownTask returns what a client sees of a stored task.
func toTask(s state.Task) (*mcp.Task, error) {
	requests, err := openRequests(s)
	if err != nil {
		return nil, err
	}
	task := &mcp.Task{
		ID: s.ID, Message: s.Message, Created: s.Created, Updated: s.Updated, TTL: s.TTL, Poll: s.Poll,
		Requests: requests, Cancelled: s.Status == state.Cancelled,
	}
	if s.Status.Ended() && !task.Cancelled {
		task.Response = decodeResult(s)
	}
	return task, nil
}

// storedEnd is the result of a call as it is kept: what clients are told of it.
type storedResult struct {
	Content    json.RawMessage `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Err        *storedError    `json:"error,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	CallID     string          `json:"call,omitempty"`
}

// storedError is what an MCP client is shown of an error. Nearest and RemovedIn are left out, as
// the message says them, and Limited, DeniedBy and Cause, as MCP has no place for them.
type storedError struct {
	Code       call.Code       `json:"code"`
	Message    string          `json:"message"`
	Trace      string          `json:"trace,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	Required   json.RawMessage `json:"required,omitempty"`
	RetryAfter time.Duration   `json:"retry,omitempty"`
	Overloaded bool            `json:"overloaded,omitempty"`
	RPC        *storedRPC      `json:"rpc,omitempty"`
}

type storedRPC struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// encodeEnd encodes the result of a call, whose JSON is valid.
func encodeResult(r call.Result) []byte {
	stored := storedResult{Content: r.Content, Structured: r.Structured, Revision: r.Revision, CallID: r.CallID}
	if e := r.Err; e != nil {
		stored.Err = &storedError{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.DetailsJSON(), Schema: e.Schema, Required: e.Required,
			RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, RPC: (*storedRPC)(e.RPC),
		}
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil // which endOf tells as unreadable
	}
	return encoded
}

// unreadable is told of an end that is not as encodeEnd makes it.
const unreadableResult = "what the task has come to cannot be read"

// endOf returns the result that a task has ended with. A task that the server gave up has
// failed by an error of the protocol.
func decodeResult(s state.Task) *call.Result {
	var stored storedResult
	switch {
	case len(s.Result) == 0:
		return protocolError(cmp.Or(s.Message, unreadableResult))
	case json.Unmarshal(s.Result, &stored) != nil:
		return protocolError(unreadableResult)
	}
	r := &call.Result{Content: stored.Content, Structured: stored.Structured, Revision: stored.Revision, CallID: stored.CallID}
	if e := stored.Err; e != nil {
		r.Err = &call.Error{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.Details, Schema: e.Schema, Required: e.Required,
			RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, RPC: (*call.RPCError)(e.RPC),
		}
		if e.Code == call.InvalidInput && json.Unmarshal(e.Details, &r.Err.Violations) == nil {
			r.Err.Details = nil
		}
	}
	return r
}

func protocolError(message string) *call.Result {
	const internal = -32603 // JSON-RPC 2.0, section 5.1
	return &call.Result{Err: &call.Error{Code: call.ExecutionError, Message: message, RPC: &call.RPCError{Code: internal, Message: message}}}
}
