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

// suspended is the state of a task that waits for its client.
type suspended struct {
	Call  storedCall `json:"body"`
	State string     `json:"state"`
	// Until is the deadline of the client, Wait the time that it had.
	Until time.Time     `json:"until"`
	Wait  time.Duration `json:"wait"`
	// Keys maps the client's keys to the keys of the call.
	Keys map[string]string `json:"keys"`
	// Answers are the client's responses, by the keys of the call.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	// Used are all keys that the client has seen.
	Used []string `json:"used"`
}

// storedCall is the stored part of a call, without the name of the tool.
type storedCall struct {
	Arguments json.RawMessage   `json:"arguments,omitempty"`
	Can       call.Capabilities `json:"can"`
}

// freshKey returns the key, or a variant of it that the client has not seen
// (SEP-2663, Task Update Requests): a script may use the same key again.
func (su *suspended) freshKey(key string) string {
	base := key
	for n := 2; slices.Contains(su.Used, key); n++ {
		key = base + "-" + strconv.Itoa(n)
	}
	return key
}

// store writes the open requests and the suspended state to a task.
func (su *suspended) store(s *state.Task, open []call.AskRequest) (err error) {
	if s.Requests, err = json.Marshal(open); err == nil {
		s.Held, err = json.Marshal(su)
	}
	if err != nil {
		return fmt.Errorf("encode suspended task: %w", err)
	}
	return nil
}

func decodeSuspended(s state.Task) (su suspended, err error) {
	if err := json.Unmarshal(s.Held, &su); err != nil {
		return su, fmt.Errorf("read suspended task: %w", err)
	}
	return su, nil
}

// openRequests returns the unanswered input requests of a task.
func openRequests(s state.Task) (open []call.AskRequest, err error) {
	if s.Status != state.InputRequired {
		return nil, nil
	}
	if err := json.Unmarshal(s.Requests, &open); err != nil {
		return nil, fmt.Errorf("read input requests of task: %w", err)
	}
	return open, nil
}

// toTask returns the part of a stored task that clients see.
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

// storedResult is the stored result of a call, as MCP clients see it.
type storedResult struct {
	Content    json.RawMessage `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Err        *storedError    `json:"error,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	CallID     string          `json:"call,omitempty"`
}

// storedError holds the fields of an error that an MCP client sees. It omits Nearest, which the
// message contains, and Limited, DeniedBy and Cause, which MCP does not have.
type storedError struct {
	Code       call.Code       `json:"code"`
	Message    string          `json:"message"`
	Trace      string          `json:"trace,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	Required   json.RawMessage `json:"required,omitempty"`
	RetryAfter time.Duration   `json:"retry,omitempty"`
	RemovedIn  string          `json:"removed_in,omitempty"`
	Overloaded bool            `json:"overloaded,omitempty"`
	RPC        *storedRPC      `json:"rpc,omitempty"`
}

type storedRPC struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// encodeResult encodes the result of a call, which has valid JSON.
func encodeResult(r call.Result) []byte {
	stored := storedResult{Content: r.Content, Structured: r.Structured, Revision: r.Revision, CallID: r.CallID}
	if e := r.Err; e != nil {
		stored.Err = &storedError{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.DetailsJSON(), Schema: e.Schema, Required: e.Required,
			RetryAfter: e.RetryAfter, RemovedIn: e.RemovedIn, Overloaded: e.Overloaded, RPC: (*storedRPC)(e.RPC),
		}
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil // decodeResult reports it as unreadable
	}
	return encoded
}

// unreadableResult is the message for a result that encodeResult did not write.
const unreadableResult = "the result of the task cannot be read"

// decodeResult returns the result of an ended task. A task without a result has
// failed with a protocol error.
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
			RetryAfter: e.RetryAfter, RemovedIn: e.RemovedIn, Overloaded: e.Overloaded, RPC: (*call.RPCError)(e.RPC),
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
