package scripting

import (
	"context"
	"errors"
	"fmt"
)

// Host performs the operations that a script cannot perform itself. The package documentation lists
// the operations with their payloads and responses, which are JSON.
type Host interface {
	// Do performs the operation op with a payload, and returns its response. seq counts the
	// operations of one call from 1, in the order of the script.
	//
	// Do is called from several goroutines at once. It must return soon after ctx is done: a Run
	// does not return before all its Do calls have returned. An error for the script is a
	// [*HostError]; the script sees any other error as UNAVAILABLE, without its text. The response
	// to an ask may come later: see [ErrSuspended].
	Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error)
}

// ErrSuspended is returned by [Host.Do], only for the operation ask, if the response will be
// supplied in a later run of the call. The run continues with everything else, and ends with a
// suspended [Outcome].
var ErrSuspended = errors.New("the response comes in a later run of the call")

// The operations of a [Host]. The package documentation has their payloads. Operations of granted
// objects are named after the object and the method, such as http.request and kv.get.
const (
	// OpLog, OpConsole, OpProgress and OpDisconnect are notifications: see [IsNotification].
	OpLog        = "log"
	OpConsole    = "console"
	OpProgress   = "progress"
	OpDisconnect = "disconnect"
	// OpEnv reads the environment before the script starts, and OpSecret a secret while the script
	// waits.
	OpEnv    = "env"
	OpSecret = "secret"
	// OpModule calls a function of a Go module, and OpCall a tool. OpResume continues a call of
	// agent code after a request to the client.
	OpModule = "module"
	OpCall   = "call"
	OpResume = "resume"
	// OpAsk sends requests to the client of the call. The response may come in a later run.
	OpAsk = "ask"
)

// The codes of a [HostError]. The operation call also has the error codes of tool calls.
const (
	// NotFound means that a file, a key or another named thing does not exist.
	NotFound = "NOT_FOUND"
	// OutsideRoot means that a path leads out of the granted folder.
	OutsideRoot = "OUTSIDE_ROOT"
	// NotGranted means that the grants of the script do not allow the operation.
	NotGranted = "NOT_GRANTED"
	// TooLarge means that a payload, a file or a response exceeds a limit.
	TooLarge = "TOO_LARGE"
	// Denied means that the system or a remote server refuses the operation.
	Denied = "DENIED"
	// TimedOut means that the operation did not end in time.
	TimedOut = "TIMEOUT"
	// Unavailable means that the operation is not possible now. It is also the code for a defect of
	// the host.
	Unavailable = "UNAVAILABLE"
	// Invalid means that the arguments of the operation are wrong.
	Invalid = "INVALID"
	// Capability refuses an ask if no client of the call has the capability. The script sees a
	// CapabilityError.
	Capability = "CAPABILITY"
	// Consent refuses a request that the user must approve first. If there are details, the run
	// asks the user, and sends the request again after the user has accepted. Scripts see neither
	// this code nor the response of the user.
	Consent = "CONSENT"
	// Asks is the response to the operation call, of agent code only, if the tool waits for input
	// from the client. Its details are {"requests", "state"}. The run sends the requests with the
	// operation ask, and continues the call with the operation resume. Scripts never see this code.
	Asks = "ASKS"
)

// HostError is an error response of a [Host]. The script sees a HostError with the same code and
// message, so Message must repeat only what the script passed.
type HostError struct {
	Code, Message string
	// Details is JSON. For the code [Capability] it is {"requiredCapabilities": {…}}, with the
	// MCP names of the missing capabilities. For [Consent] it is the params of an MCP
	// elicitation/create for the user. For [Asks] see there. Other codes have no details.
	Details []byte
}

// Error returns the code and the message.
func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// HostErrorCodes returns all codes that a [HostError] may have.
func HostErrorCodes() []string {
	return []string{NotFound, OutsideRoot, NotGranted, TooLarge, Denied, TimedOut, Unavailable, Invalid, Capability, Consent, Asks}
}

// maxPayload is the maximum JSON that a script can pass to a [Host] at once, in bytes. Larger
// payloads fail with [TooLarge] before the host is called, and leave no entry in the journal.
const maxPayload = 23 << 20

func tooLarge() *HostError {
	return &HostError{Code: TooLarge, Message: fmt.Sprintf("the arguments exceed %d MiB of JSON", maxPayload>>20)}
}

// IsNotification reports whether op is a notification: the script does not wait for a response.
func IsNotification(op string) bool {
	switch op {
	case OpLog, OpConsole, OpProgress, OpDisconnect:
		return true
	}
	return false
}
