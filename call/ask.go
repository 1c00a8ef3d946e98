package call

import (
	"encoding/json"
	"time"
)

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
