package definition

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Config is the content of the config file, with defaults filled in.
type Config struct {
	Server Server
	Listen Listen
	// Auths are the auth blocks. If nil, callers are not authenticated.
	Auths   []Auth
	Reload  Reload
	Limits  Limits
	Ceiling *Ceiling
	// Audit is nil if calls are not audited.
	Audit *Audit
	// State is nil if the state is in a file or in memory.
	State *State
	// Report is nil if the server does not report its state.
	Report    *Report
	Variables map[string]Variable
	Secrets   []Secret
	Policies  []Policy
	// RateLimits are the limit blocks; Limits is the limits block.
	RateLimits []Limit
	Hooks      []Hook
	Upstreams  []Upstream
	// Codeact is nil if agents may not run code.
	Codeact *Codeact
	// Console is nil if the listener serves no console.
	Console *Console
	Range   diag.Range
	// Incomplete means that a block or the whole file could not be parsed, so the file may
	// contain more.
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
	// DefaultDecision applies to a call that no policy matches: [DecideAllow] or [DecideDeny].
	// Production mode implies deny.
	DefaultDecision string
	// ExposeTraces includes script positions in the errors for callers. It is never set in
	// production mode.
	ExposeTraces bool
	// LenientLifecycle is set by strict_lifecycle = false: it serves sessions before their
	// clients send notifications/initialized.
	LenientLifecycle bool
	Icons            []Icon
	Range            diag.Range
}

// Listen is the listen block.
type Listen struct {
	// Address is host:port, or "unix:" and an absolute path. It is empty if the file does not
	// set it.
	Address      string
	AddressRange diag.Range
	// Hosts are accepted host names of requests in addition to loopback names.
	Hosts []string
	// Origins are the accepted browser origins.
	Origins []string
	// TLS is nil if connections are not encrypted.
	TLS   *ListenTLS
	Range diag.Range
}

// ListenTLS is the tls block of a listen block. Paths are relative to the directory of the
// config file.
type ListenTLS struct {
	CertFile, KeyFile string
	// ClientCAFile is empty if clients present no certificates.
	ClientCAFile string
	Range        diag.Range
}

// Reload is the reload block.
type Reload struct {
	// Watch is true by default.
	Watch        bool
	RequireTests bool
	Range        diag.Range
}

// Limits is the limits block.
type Limits struct {
	// Concurrency is the maximum number of concurrent calls; 0 means the default.
	Concurrency int
	// Memory is the memory limit of a worker process, in bytes; 0 means the default.
	Memory int64
	Range  diag.Range
}

// Ceiling is the ceiling block. It limits the grants of all tool files.
type Ceiling struct {
	// HTTPHosts are "host:port" with * as wildcard. Nil means no limit; an empty list allows no
	// host.
	HTTPHosts []Name
	// PrivateNetworks are the "host:port" of grants that reach private networks. Nil means no
	// limit; an empty list allows no such grant.
	PrivateNetworks []Name
	// FSRoots are absolute paths that must contain the roots. Nil means no limit; an empty list
	// allows no root.
	FSRoots []Name
	// Env are names of variables, with * as wildcard. Nil means no limit; an empty list allows
	// none.
	Env []Name
	// Ask lists the client requests that grants may allow. Nil means no limit; an empty list
	// allows none.
	Ask []Name
	// KV lists the allowed scopes of kv grants. Nil means no limit; an empty list allows none.
	KV []Name
	// ExecPaths are absolute paths of programs, with * as wildcard. Nil means no limit; an
	// empty list allows none.
	ExecPaths []Name
	// SQLDrivers are the allowed databases. SQLRoots are absolute paths that must contain
	// SQLite files and their roots. SQLHosts are "host:port" of PostgreSQL, with * as wildcard.
	// For each, nil means no limit, and an empty list allows none.
	SQLDrivers, SQLRoots, SQLHosts []Name
	// Modules are names of modules of the embedding program, with * as wildcard. Nil means no
	// limit; an empty list allows none.
	Modules []Name
	Bounds
	Range diag.Range
}

// Audit is the audit block: calls are recorded in a file.
type Audit struct {
	// Path is relative to the directory of the config file.
	Path      string
	PathRange diag.Range
	// Mode is [AuditRelaxed] or [AuditStrict].
	Mode string
	// MaxSize is the size in bytes at which a file is rotated, MaxFiles the number of rotated
	// files, and MaxAge their maximum age. 0 means the default; for MaxAge, the default is no
	// limit.
	MaxSize  int64
	MaxFiles int
	MaxAge   time.Duration
	// Capture are names and patterns of tools, resources and prompts. Their arguments are
	// recorded with values.
	Capture []Name
	Range   diag.Range
}

// SameLog reports whether two blocks, which may be nil, open the same log in the same way. Positions
// are ignored.
func (a *Audit) SameLog(b *Audit) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Range, x.PathRange, x.Capture, y.Range, y.PathRange, y.Capture = diag.Range{}, diag.Range{}, nil, diag.Range{}, diag.Range{}, nil
	return reflect.DeepEqual(x, y)
}

// The values of [Audit.Mode].
const (
	AuditRelaxed = "relaxed"
	AuditStrict  = "strict"
)

// State is the state block: several servers share their state in a database.
type State struct {
	// URL is one secret, or a URL in which secrets are the user and the password.
	URL grant.Value
	// Key is the name of the secret that encrypts the state, and OldKey of one that did before. They
	// may be empty.
	Key, OldKey string
	// Fleet is the name that the servers share; by default, the name of the server.
	Fleet string
	// Replica is the replica block, or nil.
	Replica *Replica
	Range   diag.Range
}

// Replica is the replica block: where this server listens for requests of the others.
type Replica struct {
	// Listen is HOST:PORT. Address is the HOST:PORT that the others connect to, or "" for the default.
	Listen, Address string
}

// Address returns the URL without its secrets, or nil if it is one secret.
func (s *State) Address() *url.URL {
	text := ""
	for _, p := range s.URL.Parts {
		if p.Literal == "" {
			text += "secret"
		}
		text += p.Literal
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return nil
	}
	return at
}

// IsSelf reports whether the URL names the machine of the server. For a server in a container,
// that is the container.
func (s *State) IsSelf() bool {
	at := s.Address()
	return at != nil && isSelfHost(strings.ToLower(at.Hostname()))
}

// SameStore reports whether two blocks, which may be nil, open the same store in the same way.
// Positions are ignored.
func (s *State) SameStore(other *State) bool {
	if s == nil || other == nil {
		return s == other
	}
	x, y := *s, *other
	x.Range, y.Range = diag.Range{}, diag.Range{}
	return reflect.DeepEqual(x, y)
}

// Codeact is the codeact block: agents may run code that calls tools.
type Codeact struct {
	// Tools are names and patterns of the callable tools; nil means all.
	Tools []Name
	// MaxCalls bounds the calls of one run, and MaxParallel its concurrent calls.
	MaxCalls, MaxParallel int
	// MaxStdout bounds the output of a run, in bytes.
	MaxStdout int
	// Search adds tools that search the other tools, describe one, and call one by name.
	Search bool
	// Bounds are the limits of a run.
	Bounds
	AskTimeout time.Duration
	Labels     map[string]string

	Range diag.Range
	Hashes
}

// Defaults and maximums of the codeact block.
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
	// Value is the JSON value: the supplied value, or else the default.
	Value json.RawMessage
	// Given is the supplied value, or nil if the default applies.
	Given *string
	// Sensitive excludes the value from messages and logs.
	Sensitive bool
	Range     diag.Range
	// decoded is the type in the representation of the decoder.
	decoded any
}

// VarsSchema returns the JSON Schema of the object of all variables. If the config is
// incomplete, the schema accepts anything, because there may be more variables.
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

// appendMember appends the name of an object member.
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

// Decoded returns the type in the representation of the decoder, or nil if it is invalid.
func (v Variable) Decoded() any { return v.decoded }

// SetDecoded stores the type in the representation of the decoder.
func (v *Variable) SetDecoded(t any) { v.decoded = t }

// VarValues are supplied values of variables, by name.
type VarValues map[string]VarValue

// VarValue is the supplied value of a variable.
type VarValue struct {
	// Text is the value as supplied: the string itself for a variable of type string or any,
	// else a literal in HCL or JSON.
	Text string
	// JSON is a value that has the type of its variable. If set, Text is ignored.
	JSON json.RawMessage
	// Origin is the source of the value, for messages: "--var", "MCPD_VAR_stage".
	Origin string
}

// Console is the console block: the listener serves the console. Each expression reads principal.
type Console struct {
	// Allow is the condition for callers who may look. It is nil only after an error.
	Allow *Code
	// Operate is the condition for callers who may call and change, and Impersonate, which also
	// reads other, for those who may do it as another principal. Nil permits none.
	Operate, Impersonate *Code
	Range                diag.Range
}

// Report is the report block: the server reports its state to a web server.
type Report struct {
	// URL is an https URL, or http for this machine.
	URL string
	// Token is the name of the secret that is sent as bearer token; "" for none.
	Token string
	// Labels tell apart the servers that report. A rollout of a bundle may select by them.
	Labels map[string]string
	// Every is the time between two reports.
	Every time.Duration
	Range diag.Range
}

// Limits of the report block.
const (
	DefaultReportEvery = 5 * time.Minute
	MinReportEvery     = 10 * time.Second
	MaxReportEvery     = 24 * time.Hour
	// MaxApplianceLabels bounds the labels of an appliance, and MaxApplianceLabel the bytes of a
	// name or value.
	MaxApplianceLabels = 16
	MaxApplianceLabel  = 64
)

// IsApplianceLabel reports whether a text may be the name or the value of a label of an appliance.
func IsApplianceLabel(s string) bool {
	return s != "" && len(s) <= MaxApplianceLabel && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") == ""
}
