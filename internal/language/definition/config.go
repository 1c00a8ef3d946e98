package definition

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// Config is what the operator's file says, defaults filled in.
type Config struct {
	Server Server
	Listen Listen
	// Auths are the auth blocks, nil where there are none: then nobody has to prove
	// anything.
	Auths   []Auth
	Reload  Reload
	Limits  Limits
	Ceiling *Ceiling
	// Audit is nil when nothing is written down.
	Audit     *Audit
	Variables map[string]Variable
	Secrets   []Secret
	Policies  []Policy
	// RateLimits are the limit blocks; Limits is the limits block.
	RateLimits []Limit
	Hooks      []Hook
	Upstreams  []Upstream
	// Codeact is nil where agents may write no code.
	Codeact *Codeact
	Range   diag.Range
	// Incomplete says that the file may say more: a block could not be parsed, or
	// the whole file.
	Incomplete bool
}

// The values of [Server.Mode].
const (
	Development = "development"
	Production  = "production"
)

// The values of [Server.DefaultDecision].
const (
	DecideAllow = "allow"
	DecideDeny  = "deny"
)

// Server is the server block.
type Server struct {
	Name, Title, Version, Description, Instructions string
	// Mode is [Development] or [Production].
	Mode string
	// DefaultDecision is what becomes of a call that no policy covers:
	// [DecideAllow] or [DecideDeny]; deny is implied by production mode.
	DefaultDecision string
	// ExposeTraces tells callers where in the files a body failed. Never in
	// production mode.
	ExposeTraces bool
	// LenientLifecycle is set by strict_lifecycle = false: sessions are served
	// before their clients have sent notifications/initialized.
	LenientLifecycle bool
	Icons            []Icon
	Range            diag.Range
}

// Listen is the listen block.
type Listen struct {
	// Address is host:port, or "unix:" and an absolute path, "" when the file
	// does not say.
	Address      string
	AddressRange diag.Range
	// Hosts are names that requests may carry beside the loopback ones.
	Hosts []string
	// Origins are the browser origins that may send requests.
	Origins []string
	// TLS is nil where connections are not encrypted.
	TLS   *ListenTLS
	Range diag.Range
}

// ListenTLS is the tls block of a listen block. Paths are relative to the folder
// of the operator's file.
type ListenTLS struct {
	CertFile, KeyFile string
	// ClientCAFile is empty where clients show no certificates.
	ClientCAFile string
	Range        diag.Range
}

// Reload is the reload block.
type Reload struct {
	// Watch is true unless the file says otherwise.
	Watch        bool
	RequireTests bool
	Range        diag.Range
}

// Limits is the limits block.
type Limits struct {
	// Concurrency is how many calls run at once; 0 means the default.
	Concurrency int
	// Memory is what a process that runs bodies may have, in bytes; 0 means the
	// default.
	Memory int64
	Range  diag.Range
}

// Ceiling is the ceiling block: nothing a tool file grants can exceed it.
type Ceiling struct {
	// HTTPHosts are "host:port", in which * matches any run of characters. Nil
	// is no bound; an empty list allows no host.
	HTTPHosts []Name
	// PrivateNetworks are "host:port" as in HTTPHosts: the hosts of grants that
	// reach private networks. Nil is no bound; an empty list allows no such grant.
	PrivateNetworks []Name
	// FSRoots are absolute paths, within which roots lie. Nil is no bound; an
	// empty list allows no root.
	FSRoots []Name
	// Env are names of variables, in which * matches any run of characters. Nil
	// is no bound; an empty list allows none.
	Env []Name
	// Ask is what grants may ask of clients. Nil is no bound; an empty list
	// allows nothing.
	Ask []Name
	// KV is which scopes grants of kept values may have. Nil is no bound; an
	// empty list allows none.
	KV []Name
	// ExecPaths are absolute paths of programs, in which * matches any run of
	// characters. Nil is no bound; an empty list allows no program.
	ExecPaths []Name
	// SQLDrivers are the databases that grants may be of, SQLRoots absolute paths
	// within which SQLite files and their roots lie, and SQLHosts "host:port" of
	// PostgreSQL, in which * matches any run of characters. Nil is no bound; an
	// empty list allows none.
	SQLDrivers, SQLRoots, SQLHosts []Name
	// Modules are those of the embedding program, in whose names * matches any run
	// of characters. Nil is no bound; an empty list allows none.
	Modules []Name
	Bounds
	Range diag.Range
}

// Audit is the audit block: calls are written down in a file.
type Audit struct {
	// Path is the file as it is written, relative to the folder of the operator's file.
	Path      string
	PathRange diag.Range
	// Mode is [AuditRelaxed] or [AuditStrict].
	Mode string
	// MaxSize is the size in bytes from which on a file is put aside, Keep how
	// many of those are kept and MaxAge for how long; 0 means the default, which
	// for MaxAge is for ever.
	MaxSize  int64
	MaxFiles int
	MaxAge   time.Duration
	// Capture are names and patterns of the tools, resources and prompts whose
	// arguments are kept with their values.
	Capture []Name
	Range   diag.Range
}

// The values of [Audit.Mode].
const (
	AuditRelaxed = "relaxed"
	AuditStrict  = "strict"
)

// Codeact is the codeact block: agents may write code that calls tools.
type Codeact struct {
	// Tools are names and patterns of the tools that code may call; nil is all.
	Tools []Name
	// MaxCalls is how many calls one run makes, and MaxParallel how many of them at once.
	MaxCalls, MaxParallel int
	// MaxStdout is how much a run prints, in bytes.
	MaxStdout int
	// Search says that agents are offered tools that search the others, describe one and
	// call one by its name.
	Search bool
	// Bounds are those of a run.
	Bounds
	AskTimeout time.Duration
	Labels     map[string]string

	Range diag.Range
	Hashes
}

// What a run of code has where the block does not say, and at most.
const (
	DefaultCodeTimeout  = 30 * time.Second
	DefaultCodeCalls    = 50
	MaxCodeCalls        = 256
	DefaultCodeParallel = 8
	MaxCodeParallel     = 8
	DefaultCodeStdout   = 64 << 10
	MaxCodeStdout       = 1 << 20
)

// Variable is a variable block with its value.
type Variable struct {
	Name        string
	Description string
	// Type is the JSON Schema of the values.
	Type json.RawMessage
	// Value is the JSON value: the one given from outside, else the default.
	Value json.RawMessage
	// Given is the value as it was given from outside, nil for the default.
	Given *string
	// Sensitive keeps the value out of messages and logs.
	Sensitive bool
	Range     diag.Range
	// decoded is what the reader of files made of the type.
	decoded any
}

// VarsSchema returns the JSON Schema of the object of all variables. That of an
// incomplete config allows any, since more may be declared.
func (c *Config) VarsSchema() json.RawMessage {
	if c.Incomplete {
		return json.RawMessage("{}")
	}
	out := []byte(`{"type":"object","properties":{`)
	names := slices.Sorted(maps.Keys(c.Variables))
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendMember(out, name), orDefault(c.Variables[name].Type, "{}")...)
	}
	out = append(out, '}')
	if len(names) > 0 {
		required, _ := json.Marshal(names) // strings always encode
		out = append(append(out, `,"required":`...), required...)
	}
	return append(out, `,"additionalProperties":false}`...)
}

// VarsJSON returns the object of all variables as JSON.
func (c *Config) VarsJSON() json.RawMessage {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(c.Variables)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendMember(out, name), orDefault(c.Variables[name].Value, "null")...)
	}
	return append(out, '}')
}

// appendMember appends the name of a member of an object.
func appendMember(out []byte, name string) []byte {
	quoted, _ := json.Marshal(name) // strings always encode
	return append(append(out, quoted...), ':')
}

func orDefault(raw json.RawMessage, otherwise string) []byte {
	if len(bytes.TrimSpace(raw)) == 0 {
		return []byte(otherwise)
	}
	return raw
}

// Decoded returns what the reader of files made of the type, nil when it cannot be read.
func (v Variable) Decoded() any { return v.decoded }

// SetDecoded keeps what the reader of files made of the type.
func (v *Variable) SetDecoded(t any) { v.decoded = t }

// VarValues are values for variables that come from outside, by name.
type VarValues map[string]VarValue

// VarValue is one value for a variable.
type VarValue struct {
	// Text is the value as it was given: the string itself for a variable of
	// type string or any, else a literal in the notation of HCL or JSON.
	Text string
	// JSON is a value that is known to be of the type of its variable. Text is not
	// looked at then.
	JSON json.RawMessage
	// Origin names where it came from, for messages: "--var", "MCPD_VAR_stage".
	Origin string
}
