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

// storedOutcome is the outcome of a leg as the state store keeps it, for those
// who come with the same state again. Equal parts are stored once.
type storedOutcome struct {
	Value json.RawMessage `json:",omitempty"`
	// Content is missing where the value says it, in the form that Shown is.
	Content json.RawMessage `json:",omitempty"`
	Shown   contentForm     `json:",omitempty"`
	// Structured says that the value is the structured content.
	Structured bool            `json:",omitempty"`
	Rich       bool            `json:",omitempty"`
	Reply      json.RawMessage `json:",omitempty"`
	Ask        *call.Ask       `json:",omitempty"`
	Err        *storedError    `json:",omitempty"`
	// Spoke says that the error is in the words of the body.
	Spoke bool `json:",omitempty"`
	// Approval is what became of the one that policies wanted. A question that is given
	// again is none of its own. Recorded is what the audit log
	// has for the message of the error.
	Approval *storedApproval `json:",omitempty"`
	Recorded string          `json:",omitempty"`
}

// shown is how the content of a result is made of its value.
type contentForm int

const (
	contentStored contentForm = iota
	contentIsValue
	contentIsText
)

// storedError is a [call.Error] with all but its cause. The fields are the same, so
// that none can be left out.
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

// storedApproval is an [audit.Approval] by names that do not change with it.
type storedApproval struct {
	State    string
	Why      string
	Policies []string
	Asked    []byte
}

// encodeOutcome returns the outcome of a leg of x for the state store.
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
	encoder.SetEscapeHTML(false) // content that is made of the value shows it as it is written
	if err := encoder.Encode(stored); err != nil {
		return nil, fmt.Errorf("encode the outcome of a call: %w", err)
	}
	return b.Bytes(), nil
}

// decodeOutcome makes what was stored the outcome of x.
func (x *execution) decodeOutcome(encoded []byte) (call.Result, *call.Error) {
	var stored storedOutcome
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return call.Result{}, newError(call.ExecutionError, err, "what the call has answered cannot be read")
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

// shownAs returns how the content of a result is made of its value.
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
