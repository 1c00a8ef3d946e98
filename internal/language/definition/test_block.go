package definition

import (
	"encoding/json"

	"github.com/mcpd/mcpd/diag"
)

// Test is a test block. Exactly one of Tool, Resource and Prompt is set.
type Test struct {
	Name string
	Tool string
	// Resource is a URI, or the template of one where Complete is set.
	Resource string
	Prompt   string
	// Complete is the argument of the prompt or the variable of the template that
	// is completed, "" when none is.
	Complete      string
	CompleteRange diag.Range
	// TargetRange is where the one that is set is written.
	TargetRange diag.Range
	// Input is a JSON object, {} when the test gives none. That of a prompt, and
	// of a completion, holds strings alone.
	Input json.RawMessage
	// Vars are the values that variables have in this test instead of their own, as JSON
	// that fits their types; nil when the test sets none.
	Vars      map[string]json.RawMessage
	Principal *TestPrincipal
	Agent     *TestAgent
	Source    *TestSource
	Mocks     []Mock
	Expect    Expect

	NameRange diag.Range
	Hashes
}

// TestPrincipal is the authenticated caller that a test plays.
type TestPrincipal struct {
	ID, Kind, Issuer string
	Scopes, Groups   []string
	// Claims is a JSON object, nil when there are none.
	Claims json.RawMessage
}

// TestAgent is the claimed identity that a test plays.
type TestAgent struct {
	ID, Model string
	Metadata  map[string]string
	Verified  bool
}

// TestSource is where the call of a test comes in.
type TestSource struct {
	Listener, IP string
}

// Mock answers one host call of a test.
type Mock struct {
	// Object is the granted object, such as "http.crm", "" when what is written
	// is none.
	Object string
	// Request is the method and the path, such as "GET /customers/C-1042" or
	// "readText notes.txt", the key of what is asked, or the name of a variable.
	Request string
	Status  int
	Headers map[string]string
	// Body is nil when the block holds none.
	Body []byte
	// Error is the code of a refusal, "" when the mock answers.
	Error string
	Range diag.Range
}

// Expect is what a test wants of a call. Absent members want nothing.
type Expect struct {
	// Output is the structured result as JSON, nil when it is not looked at.
	Output json.RawMessage
	// Text is the text of the result.
	Text *string
	// MIMEType is that of a resource, "" when it is not looked at.
	MIMEType string
	// Messages are those of a prompt as MCP has them, an array of objects with
	// "role" and "content"; nil when they are not looked at.
	Messages json.RawMessage
	// Values are those of a completion, nil when they are not looked at.
	Values []string
	// Error is an error code such as "INVALID_INPUT"; "" wants success.
	Error string
	// MessageMatches is an RE2 pattern for the message of the error.
	MessageMatches string
	// DeniedBy names the policy that must deny.
	DeniedBy      string
	DeniedByRange diag.Range
	// Calls lists the host calls in order, such as "http.crm GET /customers/C-1042";
	// nil when they are not looked at.
	Calls []string
}
