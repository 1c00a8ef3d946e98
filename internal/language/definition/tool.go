// Package definition is what files say once they are read: plain data without HCL. A tools
// folder makes [Definitions], the operator's file makes a [Config]. Each thing knows where
// it is written, and its [Hashes]; code in it stays text, a [Body] that knows the place of
// each of its bytes.
//
// Package hclfile decodes the files; package configcheck checks what no file shows alone.
package definition

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
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

	NameRange diag.Range
	Hashes
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

// From is an input whose value is computed, never taken from the caller.
type From struct {
	Name   string
	Expr   Body
	Schema json.RawMessage
	Range  diag.Range
}

// Hashes tell definitions apart.
type Hashes struct {
	// Hash identifies everything that defines a tool, policy or hook, or another
	// thing of its kind: its evaluated values, the files that it names, the text
	// of its bodies and where they stand.
	Hash Hash
	// Meaning is the same but for where things stand: an edit elsewhere in the
	// file leaves it as it was.
	Semantic Hash
}

// Hash is a hash of a definition.
type Hash [32]byte

// Call is what a definition says of every call of it.
type Call struct {
	// Labels are for policies; clients never see them.
	Labels map[string]string
	Bounds
	// AskTimeout is the time in which the client must have answered what it was
	// asked.
	AskTimeout time.Duration
	Grant      grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
}

// Default times of a [Tool] and a [Hook].
const (
	DefaultTimeout     = time.Second
	DefaultHookTimeout = 5 * time.Second
	DefaultTaskTTL     = time.Hour
)

// DefaultAskTimeout is how long a call waits for a person when its definition
// does not say.
const DefaultAskTimeout = 5 * time.Minute

// MaxAskTimeout is how long a call can wait for its client at most, which is
// how long the seal of what it waits for holds.
const MaxAskTimeout = 10 * time.Minute

// The values of [Tool.Task].
const (
	TaskOptional = "optional"
	TaskRequired = "required"
)

// Cache is the cache block of a tool: its results are given again for a while.
type Cache struct {
	TTL time.Duration
	// Scope is [CachePrincipal] or [CacheServer].
	Scope string
	Range diag.Range
}

// The values of [Cache.Scope]: who is given the results of whose calls.
const (
	CachePrincipal = "principal"
	CacheServer    = "server"
)

// Bounds are those of a call. A zero member is not said.
type Bounds struct {
	Timeout time.Duration
	// Memory is what the process of a call may have, in bytes.
	Memory int64
	// Output is how much JSON a result may be, in bytes.
	Output int64
	// Concurrency is how many calls may run at once.
	Concurrency int
	// Ranges are those of the arguments that are written, by their names.
	Ranges map[string]diag.Range
}

func (b *Bounds) Locate(name string, where diag.Range) {
	if b.Ranges == nil {
		b.Ranges = map[string]diag.Range{}
	}
	b.Ranges[name] = where
}

// What bounds may be.
const (
	// MaxMemory and MaxOutput are in bytes.
	MaxMemory = 4 << 30
	MaxOutput = 16 << 20
	// DefaultMemory and DefaultOutput hold where nothing is said.
	DefaultMemory = 256 << 20
	DefaultOutput = 4 << 20
)

// Icon is an icon block.
type Icon struct {
	// Src is an https or data URI.
	Src      string
	MIMEType string
	// Sizes are such as "48x48", or "any".
	Sizes []string
	// Theme is the background that the icon is for: [LightTheme], [DarkTheme]
	// or "".
	Theme string
}

// The values of [Icon.Theme].
const (
	LightTheme = "light"
	DarkTheme  = "dark"
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

// PolicyInput is the schema of the arguments as policies and bodies see them:
// with the inputs that are computed.
func (t *Tool) PolicyInput() json.RawMessage {
	if len(t.From) == 0 {
		return t.Input
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(t.Input, &object) != nil {
		return t.Input
	}
	var properties map[string]json.RawMessage
	if json.Unmarshal(object["properties"], &properties) != nil || properties == nil {
		properties = map[string]json.RawMessage{}
	}
	var required []string
	if json.Unmarshal(object["required"], &required) != nil {
		required = nil
	}
	for _, from := range t.From {
		properties[from.Name] = from.Schema
		required = append(required, from.Name)
	}
	for name, value := range map[string]any{"properties": properties, "required": required} {
		encoded, err := json.Marshal(value)
		if err != nil {
			return t.Input
		}
		object[name] = encoded
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return t.Input
	}
	return whole
}

// InputNames returns the names of all inputs, computed ones too, sorted; closed
// says that the tool accepts no others.
func (t *Tool) InputNames() (names []string, closed bool) {
	var keywords map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(t.Input, &keywords) != nil {
		return nil, false
	}
	if json.Unmarshal(keywords["properties"], &properties) != nil {
		properties = nil
	}
	for name := range properties {
		names = append(names, name)
	}
	for _, from := range t.From {
		names = append(names, from.Name)
	}
	slices.Sort(names)
	return names, string(keywords["additionalProperties"]) == "false"
}

// WriteField adds s to a hash so that no two sequences of fields collide.
func WriteField(h io.Writer, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = h.Write(n[:]) // hashes never fail
	_, _ = io.WriteString(h, s)
}
