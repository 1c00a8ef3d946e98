package pipeline

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
)

// storedOutcome is the outcome of a leg as the state store keeps it, for those
// who come with the same state again.
type storedOutcome struct {
	Value, Content, Structured, Reply json.RawMessage `json:",omitempty"`
	Rich                              bool            `json:",omitempty"`
	Ask                               *call.Ask       `json:",omitempty"`
	Err                               *storedError    `json:",omitempty"`
}

// storedError is a [CallError] with all that its caller is told.
type storedError struct {
	Code       call.Code
	Message    string
	Trace      string          `json:",omitempty"`
	Details    json.RawMessage `json:",omitempty"`
	Required   json.RawMessage `json:",omitempty"`
	RPC        *call.RPCError  `json:",omitempty"`
	RetryAfter time.Duration   `json:",omitempty"`
	Overloaded bool            `json:",omitempty"`
}

func encodeOutcome(r call.Result, e *call.Error) ([]byte, error) {
	stored := storedOutcome{Value: r.Value, Content: r.Content, Structured: r.Structured, Reply: r.Reply, Rich: r.Rich, Ask: r.Ask}
	if e != nil {
		stored.Err = &storedError{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.Details, Required: e.Required, RPC: e.RPC, RetryAfter: e.RetryAfter, Overloaded: e.Overloaded,
		}
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode the outcome of a call: %w", err)
	}
	return encoded, nil
}

func decodeOutcome(encoded []byte) (call.Result, *call.Error) {
	var stored storedOutcome
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return call.Result{}, failed(call.ExecutionError, err, "what the call has answered cannot be read")
	}
	if e := stored.Err; e != nil {
		return call.Result{}, &call.Error{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.Details, Required: e.Required, RPC: e.RPC, RetryAfter: e.RetryAfter, Overloaded: e.Overloaded,
		}
	}
	return call.Result{Value: stored.Value, Content: stored.Content, Structured: stored.Structured, Reply: stored.Reply, Rich: stored.Rich, Ask: stored.Ask}, nil
}
