package hclfile

import (
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Definitions is what one tool file defines, in the order of the file.
type Definitions struct {
	Tools     []Tool
	Resources []Resource
	Folders   []Folder
	Templates []Template
	Prompts   []Prompt
	Policies  []Policy
	Limits    []Limit
	Hooks     []Hook
	Tests     []Test
}

// The languages of a [Body].
const (
	JavaScript = "js"
	TypeScript = "ts"
	CEL        = "cel"
	SQL        = "sql"
)

// Body is code that a definition carries, not yet compiled.
type Body struct {
	// Language is [JavaScript], [TypeScript], [CEL] or [SQL].
	Language string
	Text     diag.Text
	// Path is the file that the code was read from, relative to the tools
	// root, and "" for code that stands in the definition itself.
	Path string
}

// Name is a name, or a pattern in which * matches any run of characters, and
// where it stands.
type Name struct {
	Text  string
	Range diag.Range
}

// Default times of a [Tool] and a [Hook].
const (
	DefaultTimeout     = time.Second
	DefaultHookTimeout = 5 * time.Second
	DefaultTaskTTL     = time.Hour
)

// The values of [Tool.Task].
const (
	TaskOptional = "optional"
	TaskRequired = "required"
)

// Tool is a tool block.
type Tool struct {
	Name, Title    string
	Description    string
	HasDescription bool
	Idempotent     bool
	// The MCP annotations; nil means that the file does not say.
	ReadOnly, Destructive, OpenWorld *bool
	Icons                            []Icon
	Call
	// Task is [TaskOptional], [TaskRequired], or "" for a tool that never runs
	// as a task. TaskTTL is how long the result of a task is kept.
	Task    string
	TaskTTL time.Duration
	// AskFirst says that a call becomes a task only when what it asked first
	// is answered.
	AskFirst bool
	// Cache is nil when every call runs the body.
	Cache *Cache

	// Input and Output are JSON Schemas 2020-12, their properties in declared
	// order. Input is always the schema of an object. Output is nil when the
	// tool declares none. Inputs with `from` are not part of Input.
	Input, Output json.RawMessage
	// InputOrigin and OutputOrigin say where the value behind each JSON
	// pointer into the schema was written.
	InputOrigin, OutputOrigin map[string]diag.Range
	InputRange, OutputRange   diag.Range

	From []From
	// Sensitive and SensitiveOutput are JSON pointers into the arguments and
	// the result.
	Sensitive, SensitiveOutput []string
	// BigInts and BigIntOutput are where integers may have any size: JSON pointers into
	// the arguments, computed ones too, and the result, with * for every item of a list and
	// every value of a map. Declared is Input with the type bigint named there, for those
	// who declare it in a language that has one; nil when there is none.
	BigInts, BigIntOutput []string
	Declared              json.RawMessage

	Run Body
	// DryRun answers in the place of Run in a rehearsal; nil where nothing does.
	DryRun *Body

	Range, NameRange diag.Range
	Hashes
}

// From is an input whose value is computed, never taken from the caller.
type From struct {
	Name   string
	Expr   Body
	Schema json.RawMessage
	Range  diag.Range
}

// Targets are what a policy, a limit or a hook is about. A list that is nil names
// everything of its kind, an empty one nothing: a block that has none of the
// lists is about everything, and one that has some about what they name. See
// [Covers].
type Targets struct {
	Tools []Name
	// Resources are names of resources, folders and templates.
	Resources []Name
	Prompts   []Name
}

// The values of [Policy.Disclose].
const (
	DiscloseReason  = "reason"
	DiscloseGeneric = "generic"
	DiscloseHide    = "hide"
)

// Policy is a policy block. Exactly one of Allow and Deny is set, and exactly
// one of Reason and ReasonExpr.
type Policy struct {
	Name string
	Targets
	// OnResult says that the policy judges what calls return.
	OnResult bool
	// Exactly one of Allow, Deny and Approval decides; When may be nil.
	When, Allow, Deny, Approval *Body
	Reason                      string
	ReasonExpr                  *Body
	// Disclose is [DiscloseReason], [DiscloseGeneric] or [DiscloseHide].
	Disclose string

	Range, NameRange diag.Range
	Hashes
}

// Limit is a limit block. It has a rate, a concurrency or both.
type Limit struct {
	Name string
	Targets
	// Key tells calls apart that are counted apart; nil counts all together.
	Key *Body
	// Calls are how many may be made in Per, and Burst how many in no time; all
	// are 0 when there is no rate.
	Calls, Burst int
	Per          time.Duration
	// Concurrency is how many calls may run at once; 0 is no bound.
	Concurrency int
	// Reason may be empty.
	Reason string

	Range, NameRange diag.Range
	Hashes
}

// The values of [Hook.On].
const (
	OnStart = "start"
	OnEnd   = "end"
	OnError = "error"
)

// Hook is a hook block.
type Hook struct {
	Name string
	// On holds [OnStart], [OnEnd], [OnError], each at most once.
	On []string
	Targets
	Timeout time.Duration
	// TimeoutRange is empty when no timeout is written.
	TimeoutRange diag.Range
	Grant        grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
	Run         Body

	Range, NameRange diag.Range
	Hashes
}

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

	Range, NameRange diag.Range
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
	Range diag.Range
}
