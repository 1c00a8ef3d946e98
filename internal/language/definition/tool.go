// Package definition holds the decoded content of files as plain data, without HCL. The tool
// files define [Definitions]; the config file defines a [Config]. Each definition has its range
// and its [Hashes]. Its code is text: a [Code] that maps each byte to its position.
//
// Package hclfile decodes the files. Package configcheck checks rules across files.
package definition

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strings"
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
	// The MCP annotations; nil means not set.
	ReadOnly, Destructive, OpenWorld *bool
	Icons                            []Icon
	Call
	// Task is [TaskOptional], [TaskRequired], or empty for a tool that never runs as a task.
	// TaskTTL is how long the result of a task is stored.
	Task    string
	TaskTTL time.Duration
	// AskFirst delays the start of the task until the client has answered the first input
	// requests.
	AskFirst bool
	// Cache is nil if results are not cached.
	Cache *Cache

	// Input and Output are JSON Schemas 2020-12 with their properties in declared order. Input
	// is always the schema of an object. Output is nil if the tool declares no output. Inputs
	// with `from` are not part of Input.
	Input, Output json.RawMessage
	// InputOrigin and OutputOrigin are the positions of the parts of the schemas. OutputOrigin
	// is nil if the tool declares no output.
	InputOrigin, OutputOrigin Origins
	InputRange, OutputRange   diag.Range

	From []From
	// Sensitive and SensitiveOutput are JSON pointers into the arguments and the result.
	Sensitive, SensitiveOutput []string
	// BigInts and BigIntOutput are the locations of unbounded integers: JSON pointers into the
	// arguments, including computed ones, and the result, with * for every item of a list and
	// every value of a map. Declared is Input with the type bigint at these locations, for
	// languages with such a type. It is nil if there are none.
	BigInts, BigIntOutput []string
	Declared              json.RawMessage

	Run Code
	// DryRun replaces Run in a dry run; nil if the tool has no dry run.
	DryRun *Code

	NameRange diag.Range
	Hashes
}

// The languages of a [Code].
const (
	JavaScript = "js"
	TypeScript = "ts"
	CEL        = "cel"
	SQL        = "sql"
)

// Code is uncompiled code of a definition.
type Code struct {
	// Language is [JavaScript], [TypeScript], [CEL] or [SQL].
	Language string
	Text     diag.Text
	// Path is the source file of the code, relative to the tools root. It is empty for inline
	// code.
	Path string
}

// From is an input with a computed value. Callers cannot set it.
type From struct {
	Name   string
	Expr   Code
	Schema json.RawMessage
	Range  diag.Range
}

// Hashes identify versions of a definition.
type Hashes struct {
	// Hash identifies everything that defines a tool, policy, hook or other definition: its
	// evaluated values, the files that it reads, its source text, and its position.
	Hash Hash
	// Semantic is like Hash without the position, so an edit elsewhere in the file does not
	// change it.
	Semantic Hash
}

// Hash is a hash of a definition.
type Hash [32]byte

// Call holds the settings for every call of a definition.
type Call struct {
	// Labels are for policies; clients never see them.
	Labels map[string]string
	Bounds
	// AskTimeout is how long a call waits for the response of the client to an input request.
	AskTimeout time.Duration
	Grant      grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
}

// Default timeouts of a [Tool] and a [Hook].
const (
	DefaultTimeout     = time.Second
	DefaultHookTimeout = 5 * time.Second
	DefaultTaskTTL     = time.Hour
)

// DefaultAskTimeout is the default time to wait for a person.
const DefaultAskTimeout = 5 * time.Minute

// MaxAskTimeout is the maximum time to wait for a client. It is also the lifetime of the sealed
// state of a suspended call.
const MaxAskTimeout = 10 * time.Minute

// The values of [Tool.Task].
const (
	TaskOptional = "optional"
	TaskRequired = "required"
)

// Cache is the cache block of a tool.
type Cache struct {
	TTL time.Duration
	// Scope is [CachePrincipal] or [CacheServer].
	Scope string
	Range diag.Range
}

// The values of [Cache.Scope]: the callers that share a cached result.
const (
	CachePrincipal = "principal"
	CacheServer    = "server"
)

// Bounds are the limits of a call. Zero means not set.
type Bounds struct {
	Timeout time.Duration
	// Memory is the memory limit of the process, in bytes.
	Memory int64
	// Output bounds the JSON of a result, in bytes.
	Output int64
	// Concurrency is the maximum number of concurrent calls.
	Concurrency int
	// Ranges are the positions of the written arguments, by name.
	Ranges map[string]diag.Range
}

func (b *Bounds) Locate(name string, where diag.Range) {
	if b.Ranges == nil {
		b.Ranges = map[string]diag.Range{}
	}
	b.Ranges[name] = where
}

// Limits and defaults of [Bounds].
const (
	// MaxMemory and MaxOutput are in bytes.
	MaxMemory = 4 << 30
	MaxOutput = 16 << 20
	// DefaultMemory and DefaultOutput apply if the file sets no limit.
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
	// Theme is the background for the icon: [LightTheme], [DarkTheme] or empty.
	Theme string
}

// The values of [Icon.Theme].
const (
	LightTheme = "light"
	DarkTheme  = "dark"
)

// Definitions holds the definitions of one tool file, in the order of the file.
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

// PolicyInput is the schema of the arguments for policies and scripts. It includes computed
// inputs.
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

// InputNames returns the sorted names of all inputs, including computed ones. closed means that
// the tool accepts no other arguments.
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

// WriteField adds s to a hash so that different sequences of fields cannot collide.
func WriteField(h io.Writer, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	_, _ = h.Write(n[:]) // hashes never fail
	_, _ = io.WriteString(h, s)
}

// Origins are the positions of the parts of a schema. Most schemas have few parts, for which a map
// would take several times the memory.
type Origins []Origin

// Origin is the position of the part of a schema at a JSON pointer (RFC 6901, "" is the whole
// schema).
type Origin struct {
	Pointer string
	Range   diag.Range
}

// Sort sorts the origins for [Origins.At]. Of several origins with one pointer, the last one stays.
func (o *Origins) Sort() {
	slices.Reverse(*o)
	slices.SortStableFunc(*o, func(a, b Origin) int { return strings.Compare(a.Pointer, b.Pointer) })
	*o = slices.Clip(slices.CompactFunc(*o, func(a, b Origin) bool { return a.Pointer == b.Pointer }))
}

// At returns the position at a pointer.
func (o Origins) At(pointer string) (diag.Range, bool) {
	i, found := slices.BinarySearchFunc(o, pointer, func(at Origin, pointer string) int { return strings.Compare(at.Pointer, pointer) })
	if !found {
		return diag.Range{}, false
	}
	return o[i].Range, true
}
