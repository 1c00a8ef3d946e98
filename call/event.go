package call

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Phase is a point in the life of a call at which hooks fire (RFC section 12).
type Phase string

const (
	// Start fires once, before anything else.
	Start Phase = "start"
	// End fires once when the call has a result.
	End Phase = "end"
	// Failed fires once when the call has none. Exactly one of End and Failed
	// fires for every call, however it ends.
	Failed Phase = "error"
)

// Event is what a hook is told. It is a copy: nothing that a hook does
// changes the call or its result.
type Event struct {
	Phase Phase `json:"phase"`
	// Tool is the name of the tool, of the resource or of the prompt; for what
	// does not exist, what the caller asked for.
	Tool string `json:"tool"`
	// Kind is "tool", "resource", "prompt" or "completion".
	Kind string `json:"kind"`
	// URI is that of the resource; empty for any other kind.
	URI    string `json:"uri,omitempty"`
	CallID string `json:"call_id"`
	// RootID is the CallID of the first leg of a call that asks its client, and
	// Leg counts its legs from one. At the start of a later leg, whose state has
	// not been looked at, both are absent.
	RootID string `json:"root_id,omitempty"`
	Leg    int    `json:"leg,omitempty"`
	Via    Via    `json:"via"`
	// Depth counts the calls that this one is nested in. Parent is the name of
	// what made it, and ParentID the CallID of that; empty for a client's own.
	Depth    int    `json:"depth,omitempty"`
	Parent   string `json:"parent,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	identity.Caller
	// Arguments are as the caller sent them, without the values of sensitive
	// inputs; nil when they are not a JSON object, or when there is no such tool.
	Arguments json.RawMessage `json:"arguments"`
	// Result is the value that the tool returned; set at End.
	Result json.RawMessage `json:"result,omitempty"`
	// Cached says, at End, that the result is that of another call.
	Cached bool `json:"cached,omitempty"`
	// Outcome is "input_required" at End when the call waits for its client, "rehearsed"
	// when code has planned it and it was not made, and empty otherwise.
	Outcome string `json:"outcome,omitempty"`
	// Err is set at Failed.
	Err *Error `json:"error,omitempty"`
	// CancelledBy says, at Failed, who had the call end: "client", "connection",
	// "session" or "server"; empty when nobody did. CancelReason is why: of a client, its
	// own words, with what is secret or not seen taken out of them; it may be empty.
	CancelledBy  string `json:"cancelled_by,omitempty"`
	CancelReason string `json:"cancel_reason,omitempty"`
	// Duration is the time since the call began; set at End and Failed.
	Duration time.Duration `json:"-"`
	// Revision names the snapshot that serves the call.
	Revision string `json:"revision"`
}

// Clone returns a copy that may be changed without anybody noticing. It lacks the
// cause of the error, which is for the log.
func (e Event) Clone() Event {
	e.Caller, e.Arguments, e.Result = e.Caller.Clone(), bytes.Clone(e.Arguments), bytes.Clone(e.Result)
	if e.Err != nil {
		e.Err = e.Err.forCaller()
	}
	return e
}

// Capabilities are what the client of a call can be asked for.
type Capabilities struct {
	// Form and URL are the two ways to elicit.
	Form, URL bool
	// Sample is for messages of the client's model, SampleTools for those with tools.
	Sample, SampleTools bool
	Roots               bool
	// Tasks says that the call of a tool may be answered with a task.
	Tasks bool
	// NoApproval says that nobody approves calls there, though forms are filled in: a call
	// that wants an approval is denied, as by a client that cannot be asked.
	NoApproval bool
}

// Ask says that a call waits for its client: it has ended for now, and holds
// nothing. The same [Request] with a [Resume] goes on with it.
type Ask struct {
	// Requests are what the client is asked, at least one.
	Requests []AskRequest
	// State is sealed: the client can neither read nor change it, and it stands
	// for this call of this principal with these arguments alone, once.
	State string
	// Wait is how long the answers may take.
	Wait time.Duration
}

// AskRequest is one thing that a client is asked.
type AskRequest struct {
	// Key is that of the answer, unique among all that is open.
	Key string `json:"key"`
	// Method is elicitation/create, sampling/createMessage or roots/list, and
	// Params are MCP's.
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Resume is what a client answered to an [Ask].
type Resume struct {
	// State is that of the Ask, untrusted.
	State string
	// Responses are results by the keys of the requests, each a JSON object. A modern client
	// may leave some out, and add keys that no request has. Refused are the errors with which
	// a legacy client answered, by the keys of its requests.
	Responses map[string]json.RawMessage
	Refused   map[string]RPCError
}
