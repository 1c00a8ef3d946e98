package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// storedOutcome is the outcome of a leg in the state store, for repeated requests with the same
// state. Equal parts are stored once.
type storedOutcome struct {
	Value json.RawMessage `json:",omitempty"`
	// Content is omitted if it can be derived from the value, in the form that Shown names.
	Content json.RawMessage `json:",omitempty"`
	Shown   contentForm     `json:",omitempty"`
	// Structured reports that the value is the structured content.
	Structured bool            `json:",omitempty"`
	Rich       bool            `json:",omitempty"`
	Reply      json.RawMessage `json:",omitempty"`
	Ask        *call.Ask       `json:",omitempty"`
	Err        *storedError    `json:",omitempty"`
	// Spoke reports that the error message comes from the script.
	Spoke bool `json:",omitempty"`
	// Approval is the state of the approval; nil for an input request. Recorded is the error
	// message for the audit log.
	Approval *storedApproval `json:",omitempty"`
	Recorded string          `json:",omitempty"`
}

// contentForm says how the content of a result is derived from its value.
type contentForm int

const (
	contentStored contentForm = iota
	contentIsValue
	contentIsText
)

// storedError is a [call.Error] without its cause. The types convert, so no field can be forgotten.
type storedError struct {
	Code       call.Code
	Message    string
	Violations []call.Violation `json:",omitempty"`
	Schema     json.RawMessage  `json:",omitempty"`
	Nearest    string           `json:",omitempty"`
	RemovedIn  string           `json:",omitempty"`
	Details    json.RawMessage  `json:",omitempty"`
	Required   json.RawMessage  `json:",omitempty"`
	RPC        *call.RPCError   `json:",omitempty"`
	RetryAfter time.Duration    `json:",omitempty"`
	Limited    bool             `json:",omitempty"`
	Trace      string           `json:",omitempty"`
	Overloaded bool             `json:",omitempty"`
	DeniedBy   string           `json:",omitempty"`
	Cause      error            `json:"-"`
}

// storedApproval is an [audit.Approval] with stable names.
type storedApproval struct {
	State    string
	Why      string
	Policies []string
	Asked    []byte
}

// encodeOutcome encodes the outcome of a leg for the state store.
func (x *execution) encodeOutcome(r call.Result, e *call.Error) ([]byte, error) {
	stored := storedOutcome{
		Value: r.Value, Content: r.Content, Shown: contentFormOf(r), Structured: r.Structured != nil, Rich: r.Rich, Reply: r.Reply, Ask: r.Ask,
		Err: (*storedError)(e), Spoke: x.errorFromScript, Recorded: x.approval.auditMessage,
	}
	if r.Ask == nil {
		stored.Approval = (*storedApproval)(x.approval.record)
	}
	if stored.Shown != contentStored {
		stored.Content = nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // so that derived content compares equal
	if err := encoder.Encode(stored); err != nil {
		return nil, fmt.Errorf("encode the outcome of a call: %w", err)
	}
	return b.Bytes(), nil
}

// decodeOutcome restores a stored outcome.
func (x *execution) decodeOutcome(encoded []byte) (call.Result, *call.Error) {
	var stored storedOutcome
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "the stored result of the call cannot be read")
	}
	x.errorFromScript, x.approval.record, x.approval.auditMessage = stored.Spoke, (*audit.Approval)(stored.Approval), stored.Recorded
	if stored.Err != nil {
		return call.Result{}, (*call.Error)(stored.Err)
	}
	r := call.Result{Value: stored.Value, Content: stored.Content, Rich: stored.Rich, Reply: stored.Reply, Ask: stored.Ask}
	switch stored.Shown {
	case contentIsValue:
		r.Content = reply.ValueContent(r.Value)
	case contentIsText:
		r.Content = reply.TextContent(r.Value)
	}
	if stored.Structured {
		r.Structured = r.Value
	}
	return r, nil
}

// contentFormOf returns how the content of a result is derived from its value.
func contentFormOf(r call.Result) contentForm {
	switch {
	case r.Rich || r.Value == nil:
		return contentStored
	case bytes.Equal(r.Content, reply.ValueContent(r.Value)):
		return contentIsValue
	case bytes.Equal(r.Content, reply.TextContent(r.Value)):
		return contentIsText
	}
	return contentStored
}
