package definition

import (
	"encoding/json"

	"github.com/mcpd/mcpd/diag"
)

// Test is a test block. Exactly one of Tool, Resource and Prompt is set.
type Test struct {
	Name string
	Tool string
	// Resource is a URI, or a URI template if Complete is set.
	Resource string
	Prompt   string
	// Complete is the completed argument of the prompt or variable of the template. It is empty
	// if the test does not complete.
	Complete      string
	CompleteRange diag.Range
	// TargetRange is the range of Tool, Resource or Prompt.
	TargetRange diag.Range
	// Input is a JSON object, {} by default. For a prompt or a completion, its values are
	// strings.
	Input json.RawMessage
	// Vars overrides variables in this test. The values are JSON of the right types; nil if
	// there are no overrides.
	Vars      map[string]json.RawMessage
	Principal *TestPrincipal
	Agent     *TestAgent
	Source    *TestSource
	Mocks     []Mock
	Expect    Expect

	NameRange diag.Range
	Hashes
}

// TestPrincipal is the simulated authenticated caller.
type TestPrincipal struct {
	ID, Kind, Issuer string
	Scopes, Groups   []string
	// Claims is a JSON object, or nil.
	Claims json.RawMessage
}

// TestAgent is the simulated identity of the agent.
type TestAgent struct {
	ID, Model string
	Metadata  map[string]string
	Verified  bool
}

// TestSource is the simulated origin of the call.
type TestSource struct {
	Listener, IP string
}

// Mock is the response to a host call of a test.
type Mock struct {
	// Object is the granted object, such as "http.crm". It is empty if the block names no valid
	// object.
	Object string
	// Request is the method and the path, such as "GET /customers/C-1042" or "readText
	// notes.txt", the key of an input request, or the name of a variable.
	Request string
	Status  int
	Headers map[string]string
	// Body is nil if the block has none.
	Body []byte
	// Error is an error code; empty means a successful response.
	Error string
	Range diag.Range
}

// Expect is the expected outcome of a call. It ignores members that are not set.
type Expect struct {
	// Output is the structured result as JSON; nil is not compared.
	Output json.RawMessage
	// Text is the text of the result.
	Text *string
	// MIMEType is the type of a resource; empty is not compared.
	MIMEType string
	// Messages are the messages of a prompt in MCP form: an array of objects with "role" and
	// "content". Nil is not compared.
	Messages json.RawMessage
	// Values are the completion values; nil is not compared.
	Values []string
	// Error is an error code such as "INVALID_INPUT"; empty expects success.
	Error string
	// MessageMatches is an RE2 pattern for the message of the error.
	MessageMatches string
	// DeniedBy names the policy that must deny.
	DeniedBy      string
	DeniedByRange diag.Range
	// Calls lists the host calls in order, such as "http.crm GET /customers/C-1042"; nil is not
	// compared.
	Calls []string
}
