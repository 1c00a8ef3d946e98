package call

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Phase is a point in a call at which hooks fire (RFC section 12).
type Phase string

const (
	// Start fires once, before anything else.
	Start Phase = "start"
	// End fires once if the call has a result.
	End Phase = "end"
	// Failed fires once if the call has no result. Exactly one of End and Failed fires per call.
	Failed Phase = "error"
)

// Event is the data that a hook receives. It is a copy: a hook cannot change the call or its
// result.
type Event struct {
	// Phase says at which point of the call the event occurs.
	Phase Phase `json:"phase"`
	// Tool is the name of the tool, resource or prompt. If none exists, it is the requested name.
	Tool string `json:"tool"`
	// Kind is "tool", "resource", "prompt" or "completion".
	Kind string `json:"kind"`
	// URI is the URI of the resource; empty for any other kind.
	URI string `json:"uri,omitempty"`
	// CallID is unique to this call. All events of the call have it.
	CallID string `json:"call_id"`
	// RootID is the CallID of the first leg. A call that requests input from its client consists of
	// several legs; Leg counts them from one. Both are absent at the start of a later leg, before
	// its state is verified.
	RootID string `json:"root_id,omitempty"`
	Leg    int    `json:"leg,omitempty"`
	// Via says what made the call.
	Via Via `json:"via"`
	// Depth is the number of calls that enclose this one. Parent is the name of the item that made
	// the call, and ParentID the CallID of the enclosing call; empty for a call by a client.
	Depth    int    `json:"depth,omitempty"`
	Parent   string `json:"parent,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	identity.Caller
	// Arguments are as the caller sent them, without the values of sensitive inputs. They are nil
	// if they are not a JSON object, or if the tool does not exist.
	Arguments json.RawMessage `json:"arguments"`
	// Result is the value that the tool returned. It is set at End.
	Result json.RawMessage `json:"result,omitempty"`
	// Cached reports, at End, that the result comes from the cache.
	Cached bool `json:"cached,omitempty"`
	// Outcome is "input_required" at End if the call waits for its client, "rehearsed" if agent
	// code planned the call without making it, and empty otherwise.
	Outcome string `json:"outcome,omitempty"`
	// Err is set at Failed.
	Err *Error `json:"error,omitempty"`
	// CancelledBy says, at Failed, who ended the call: one of the CancelledBy
	// constants; empty if it was not cancelled. CancelReason may be empty. If a client gave it,
	// secrets and invisible characters are removed.
	CancelledBy  string `json:"cancelled_by,omitempty"`
	CancelReason string `json:"cancel_reason,omitempty"`
	// Duration is the time since the call started. It is set at End and Failed.
	Duration time.Duration `json:"-"`
	// Revision names the snapshot that serves the call.
	Revision string `json:"revision"`
}

// Clone returns a deep copy without the cause of the error.
func (e Event) Clone() Event {
	e.Caller, e.Arguments, e.Result = e.Caller.Clone(), bytes.Clone(e.Arguments), bytes.Clone(e.Result)
	if e.Err != nil {
		e.Err = e.Err.forCaller()
	}
	return e
}

// Capabilities lists the kinds of input that the client of a call supports.
type Capabilities struct {
	// Form and URL are the two modes of elicitation.
	Form, URL bool
	// Sample reports support for sampling, and SampleTools for sampling with tools.
	Sample, SampleTools bool
	Roots               bool
	// Tasks reports that a tool call may be answered with a task.
	Tasks bool
	// NoApproval reports that the client fills in forms but approves no calls. A call that needs an
	// approval is denied, as for a client without elicitation.
	NoApproval bool
}

// Ask reports that a call waits for its client. The call has ended for now and holds no resources.
// Sending the same [Request] with a [Resume] continues it.
type Ask struct {
	// Requests has at least one element.
	Requests []AskRequest
	// State is sealed: the client can neither read nor change it. It is valid once, for this call
	// of this principal with these arguments.
	State string
	// Wait is the time that the client has to respond.
	Wait time.Duration
}

// AskRequest is one input request to a client.
type AskRequest struct {
	// Key identifies the response. It is unique among all open requests.
	Key string `json:"key"`
	// Method is elicitation/create, sampling/createMessage or roots/list. Params are the parameters
	// as MCP defines them.
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Resume holds the responses of a client to an [Ask].
type Resume struct {
	// State is the State of the Ask. It is untrusted.
	State string
	// Responses are results by the keys of the requests, each a JSON object. A modern client may
	// omit some, and add keys that no request has. Refused are the errors of a legacy client, by
	// the keys of its requests.
	Responses map[string]json.RawMessage
	Refused   map[string]RPCError
}
