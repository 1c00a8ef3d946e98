package scripting

import (
	"context"
	"errors"
	"fmt"
)

// Host does for a script what the script may not do itself. Only bytes cross:
// op names the operation, payload and answer are JSON (see the package
// documentation for the operations). seq counts the operations of one call
// from 1, in the order in which the script asked for them.
//
// Do is called from several goroutines at once. It must return soon after ctx
// is done; a Run does not return before every Do that it started has. A
// refusal that the script should see is a [*HostError]; any other error is
// shown to the script as UNAVAILABLE, without its text. The answer to an ask
// may come later: see [ErrSuspended].
type Host interface {
	Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error)
}

// ErrSuspended is how [Host.Do] says of the operation ask, and of no other,
// that the answer comes in another run of the call. The run goes on with
// everything else, and ends with an [Outcome] that is suspended.
var ErrSuspended = errors.New("the answer comes in another run of the call")

// The operations of a [Host], with their payloads in the package documentation. Those of a granted
// object have the names of the object and the method, such as http.request and kv.get.
const (
	// OpLog, OpConsole, OpProgress and OpDisconnect are messages: see [IsMessage].
	OpLog        = "log"
	OpConsole    = "console"
	OpProgress   = "progress"
	OpDisconnect = "disconnect"
	// OpEnv reads the environment before the body begins, and OpSecret a secret while the body waits.
	OpEnv    = "env"
	OpSecret = "secret"
	// OpModule calls a function of a Go module, and OpCall a tool. OpResume goes on with a call of
	// agent code that has asked the client.
	OpModule = "module"
	OpCall   = "call"
	OpResume = "resume"
	// OpAsk asks the client of the call. Its answer may come in another run.
	OpAsk = "ask"
)

// The codes of a [HostError]. Of the operation call there are the codes by which
// calls fail, too.
const (
	NotFound    = "NOT_FOUND"
	OutsideRoot = "OUTSIDE_ROOT"
	NotGranted  = "NOT_GRANTED"
	TooLarge    = "TOO_LARGE"
	Denied      = "DENIED"
	TimedOut    = "TIMEOUT"
	Unavailable = "UNAVAILABLE"
	Invalid     = "INVALID"
	// Capability refuses an ask that no client of the call can answer. The
	// script sees it as a CapabilityError.
	Capability = "CAPABILITY"
	// Consent refuses a request that a user must allow first. With details the
	// run asks the user, and sends the request again once they have accepted; it is
	// never shown to a script, and neither is what they answered.
	Consent = "CONSENT"
	// Asks answers the operation call, of code alone, of a tool that waits for the client.
	// Its details are {"requests", "state"}: the run asks the requests, as those of the
	// operation ask, and goes on with the call by the operation resume. It is
	// never shown to a script.
	Asks = "ASKS"
)

// HostError is a refusal by a [Host]. The script sees it as a HostError with
// the same code and message, so Message repeats only what the script passed.
type HostError struct {
	Code, Message string
	// Details is JSON. Of the code [Capability] it is {"requiredCapabilities": {…}},
	// as MCP names what a client lacks, and of the code [Consent] what the user is
	// asked: the params of an elicitation/create of MCP. Of [Asks] see there. Others have none.
	Details []byte
}

// Error returns the code and the message.
func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// HostErrorCodes returns all codes that a [HostError] may have.
func HostErrorCodes() []string {
	return []string{NotFound, OutsideRoot, NotGranted, TooLarge, Denied, TimedOut, Unavailable, Invalid, Capability, Consent, Asks}
}

// maxPayload is the most bytes of JSON that a body can pass to a [Host] at once.
// More is refused as [TooLarge] before the host hears of it, and leaves nothing
// in the journal.
const maxPayload = 23 << 20

func tooLarge() *HostError {
	return &HostError{Code: TooLarge, Message: fmt.Sprintf("what is passed is more than %d MiB as JSON", maxPayload>>20)}
}

// IsMessage reports whether op is a message: the body does not wait for an answer.
func IsNotification(op string) bool {
	switch op {
	case OpLog, OpConsole, OpProgress, OpDisconnect:
		return true
	}
	return false
}
