package upstream

import (
	"encoding/json"
	"fmt"
)

// The methods of requests that go to servers, and of those that come from them.
const (
	MethodTool     = "tools/call"
	MethodRead     = "resources/read"
	MethodPrompt   = "prompts/get"
	MethodComplete = "completion/complete"

	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	methodPing   = "ping"

	// methodCancelled is that of the notification by which one side wants no answer to its
	// request any more.
	methodCancelled = "notifications/cancelled"
	// methodUpdated is that of the notification that a resource has changed.
	methodUpdated = "notifications/resources/updated"
)

// Request is what a server is asked.
type Request struct {
	// Method is one of those above.
	Method string
	// Name is that of the tool or the prompt, or the URI of the resource, as the server
	// itself calls it. A completion has none.
	Name string
	// Arguments are a JSON object; of a completion its params.
	Arguments json.RawMessage
	// Can are the capabilities of the client that the server may ask, as MCP names them;
	// nil for none. A server of an earlier revision than 2026-07-28 is told those of the
	// [Place] once.
	Can json.RawMessage
	// Debug has the server asked for log records of the level debug, too.
	Debug bool
	// Responses and State go on with a call that a server of that revision has not ended:
	// what its client answered, by the keys of the requests.
	Responses map[string]json.RawMessage
	State     string
	// Accepts reports whether the call may be made of a server that lists this, which is what
	// it said last on the connection that is called on. Nil accepts all.
	Accepts func(*Listing) bool
}

// Listener hears what a server tells of a call before it ends. Its methods must not
// block.
type Listener interface {
	// Progress tells that done of total is done; total is nil when not known.
	Progress(done float64, total *float64, message string)
	// Log passes on a record: level is what the server calls it, and fields are JSON of any
	// kind, nil where there is a message.
	Log(level, message string, fields json.RawMessage)
}

// Reply is what comes next of a call: exactly one of Result, Fault and Asked is set.
type Reply struct {
	// Result is that of the method, as the server has sent it.
	Result json.RawMessage
	// Fault is an error of the protocol, in the words of the server.
	Fault *Fault
	// Asked are what the server wants to know before it goes on, in the order of asking.
	Asked []Question
	// Waits says that the call itself goes on once they are answered by [Call.Answer].
	// Elsewhere State goes back to the server with the answers, in another [Request].
	Waits bool
	State string
}

// Fault is an error of JSON-RPC.
type Fault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the code and the message.
func (f *Fault) Error() string { return fmt.Sprintf("%d: %s", f.Code, f.Message) }

// Question is what a server asks the client of a call.
type Question struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Answer is what a client answers: Result, as MCP has it for the method, or the
// reason why there is none.
type Answer struct {
	Result  json.RawMessage
	Refused string
}
