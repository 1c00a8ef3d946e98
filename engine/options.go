package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
)

// Options configure a [Server]. Only Name is required.
type Options struct {
	// Name and Version are defined by RFC-0001 (section 7). The server block of mcpd.hcl overrides
	// them and the next three fields.
	Name, Version string
	// Title is a display name, Description the purpose of the server, and Instructions advice for a
	// model.
	Title, Description, Instructions string
	// Transport is the transport that package serve binds: "http" (the default) or "stdio".
	Transport string

	// Extensions are optional parts of mcpd, from the packages below extensions/.
	Extensions []Extension

	// Files are the tool files and mcpd.hcl, and Scripts configure how their scripts run.
	Files   Files
	Scripts Scripts

	// StatePath is the file for state that outlives a restart: suspended calls, key-value pairs and
	// tasks. It is created at the first use, and one process may open it at a time. If it is empty,
	// the state is in memory. A path needs extensions/sqlite in Extensions.
	StatePath string
	// StateURL is a PostgreSQL database for that state, which several servers share: see
	// docs/reference/state.md. It needs extensions/postgres in Extensions. StateFleet is the name of
	// these servers, by default Name; a database refuses another one. The first of StateKeys
	// encrypts what is stored, and all decrypt it; they are as long as keys of a state block. Unless
	// Now is set, the database has the clock.
	StateURL, StateFleet string
	StateKeys            []string
	// StateExisting is for programs beside the servers of a database: the state block is used in every
	// Mode, and a database without state of this version is an error.
	StateExisting bool
	// StateOptional keeps the state in memory, with a warning in the log, if the file cannot be
	// used.
	StateOptional bool

	// Front checks whether a front can serve the files: serve.Checks, serve.ToolChecks or a type of
	// the program. Nil accepts everything.
	Front FrontChecks
	// Mode is the purpose of the program. The zero Mode serves.
	Mode Mode

	// DeferReady delays the server.started audit event until [Server.MarkReady] is called, so that
	// a failed start leaves no audit record.
	DeferReady bool

	// Upstreams are MCP servers. Their tools are offered here, as with upstream blocks.
	Upstreams []Upstream

	// Policies are evaluated in order, after the policies of mcpd.hcl.
	Policies []Policy
	// Limits is a shared store for the limit blocks of files. Nil counts in the memory of this
	// server.
	Limits *call.SharedLimits
	// Hooks are called in order and synchronously, before the hooks in files.
	Hooks []Hook
	// OnEvent is called for each server event. It may call only Snapshot and Status of the server.
	OnEvent func(Event)
	// Logger receives the log, with secrets redacted. Nil discards it.
	Logger *slog.Logger
	// LogRedactor redacts the secrets of the server in other loggers. It belongs to one server; nil
	// means that there are no other loggers.
	LogRedactor *LogRedactor
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Files are the files of a [Server] and the values that they refer to.
type Files struct {
	// Tools is the directory of the tool files, read concurrently: [Dir], an embed.FS, or nil for none.
	Tools fs.FS
	// ToolsPath names the directory in diagnostics. Default "tools.d".
	ToolsPath string
	// Config holds the configuration file by the base name of ConfigPath, "mcpd.hcl" by default. Its
	// paths are relative to the directory of ConfigPath. Config and the file may be missing.
	Config     fs.FS
	ConfigPath string
	// Vars are the values of variable blocks by name.
	Vars map[string]VarValue
	// LookupEnv reads the environment for secret and env blocks; nil means an empty environment.
	LookupEnv func(name string) (string, bool)
	// Production enforces the rules of production mode, whatever mcpd.hcl declares.
	Production bool
	// LockPath is the lock file with the accepted versions of upstream tools. Only these versions
	// are served. If Options.Mode is zero, a new tool is added to the file before it is served. An
	// empty path pins nothing. If Lock is set, it holds the file by the base name of LockPath, as
	// part of files that are never written: only the tools in it are served.
	LockPath string
	Lock     fs.FS
	// RequireTests enforces reload.require_tests, whatever mcpd.hcl declares.
	RequireTests bool
}

// Scripts configure how the scripts of files run, and which parts of the program they may use.
type Scripts struct {
	// Modules are Go functions of the program that files may grant to scripts.
	Modules []HostModule
	// Executor runs the scripts of files. Package scripting/worker has one that runs them in
	// separate processes. The default is [scripting.Inline]: scripts then run in this process, and
	// can crash or hang it. [New] logs a warning unless the program sets it explicitly. The server
	// closes Executor.
	Executor scripting.Executor
	// Programs runs agent code, for the codeact block. By default Executor runs it if it is a
	// [scripting.StatsExecutor]; otherwise programs are rejected. Set [scripting.Inline] only if every
	// agent that may call run_code is trusted, as a program can end the process that runs it. It
	// must be another executor than Executor. The server closes it, too.
	Programs scripting.Executor
	// Trial compiles large scripts in another process first; see [scripting.Source]. Nil disables
	// it.
	Trial func(scripting.Source) error
	// Supervisor is the command line of the process that runs programs of exec grants: `mcpd
	// supervise`. Without it, processes that they start may outlive them.
	Supervisor []string
}

// Mode is the purpose of a program. The zero Mode is for the program that serves clients: calls are
// audited, and newly accepted upstream tools are written to the lock file. Other programs that read
// the same files use another Mode.
type Mode int

const serving Mode = 0

const (
	// ReadOnly is for programs that run beside the serving one: the audit block and
	// reload.require_tests are ignored, and the lock file is not written.
	ReadOnly Mode = iota + 1
	// Offline is ReadOnly without connections: upstream tools come from the lock file.
	Offline
	// Checking is Offline, but with reload.require_tests, and a load also checks whether the audit
	// log could be opened.
	Checking
	// Eager is ReadOnly for programs that compare upstream tools with the lock file or change it.
	// All upstream servers are connected at once, and policies need not match the accepted tools.
	Eager
)

// requiresTests reports whether reload.require_tests applies: files whose tests fail are not served
// and not reported as correct. Other programs load them, so that an author can run and fix them.
func (m Mode) requiresTests() bool { return m == serving || m == Checking }

// offline reports whether no upstream server is connected.
func (m Mode) offline() bool { return m == Offline || m == Checking }

// FrontChecks check whether a front can serve the files. A front, such as serve.Front, connects an
// engine to clients. An error fails the load. It is for the author of a tool or for the operator, and
// does not name the source position: the engine adds it.
type FrontChecks interface {
	// CheckTool returns an error if the front cannot present a tool to clients.
	CheckTool(Metadata) error
	// CheckAuth returns an error if the auth blocks cannot be applied now, such as with a missing file.
	CheckAuth([]Auth) error
	// CheckTLS returns an error if the front cannot listen with a tls block now. A running listener
	// keeps the files that it has read.
	CheckTLS(ListenTLS) error
	// CheckListen returns an error if the front rejects a listen block, given the auth blocks.
	CheckListen(Listen, []Auth) error
	// CheckVacant is called in the first load, if the files are valid, before anything is served,
	// an upstream is connected or the audit log is opened. Load returns its error, for example
	// because another program uses the address.
	CheckVacant(Listen) error
}

// VarValue is the value of a variable block.
type VarValue struct {
	// Text is the string itself for a variable of type string or any, else a literal in HCL or
	// JSON.
	Text string
	// JSON is a value that has the type of its variable. Text is then ignored.
	JSON json.RawMessage
	// Origin names the source of the value in messages: "--var", "MCPD_VAR_stage".
	Origin string
}

func (o Options) withDefaults() Options {
	o.Files.ToolsPath = cmp.Or(o.Files.ToolsPath, "tools.d")
	o.Files.ConfigPath = cmp.Or(o.Files.ConfigPath, "mcpd.hcl")
	o.Transport = cmp.Or(o.Transport, "http")
	o.LogRedactor = cmp.Or(o.LogRedactor, new(LogRedactor))
	o.Logger = o.LogRedactor.Logger(cmp.Or(o.Logger, slog.New(slog.DiscardHandler)))
	if o.Files.LookupEnv == nil {
		o.Files.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if o.Scripts.Executor == nil {
		o.Scripts.Executor = scripting.Inline()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// codeExecutor returns the executor of agent code; nil if there is none.
func (o *Options) codeExecutor() scripting.Executor {
	if o.Scripts.Programs != nil {
		return o.Scripts.Programs
	}
	if staffed, ok := o.Scripts.Executor.(scripting.StatsExecutor); ok {
		return staffed
	}
	return nil
}

// workerExecutor returns the executor that has worker processes, if any.
func (o *Options) workerExecutor() scripting.StatsExecutor {
	for _, x := range []scripting.Executor{o.Scripts.Executor, o.Scripts.Programs} {
		if staffed, ok := x.(scripting.StatsExecutor); ok {
			return staffed
		}
	}
	return nil
}

// closeExecutors closes the executors.
func (o *Options) closeExecutors() error {
	err := o.Scripts.Executor.Close()
	if o.Scripts.Programs == nil {
		return err
	}
	return errors.Join(err, o.Scripts.Programs.Close())
}

// catalog returns the options of the catalog builder.
func (o Options) catalog(runner *hooks.Runner, brokers host.Brokers) catalog.Options {
	c := catalog.Options{
		Server: definition.Server{Name: o.Name, Version: o.Version, Title: o.Title, Description: o.Description, Instructions: o.Instructions},
		Tools:  o.Files.Tools, ToolsPath: o.Files.ToolsPath, Config: o.Files.Config, ConfigPath: o.Files.ConfigPath,
		Trial: o.Scripts.Trial, GoPolicies: len(o.Policies), Runner: runner, Modules: brokers.Modules, StatePath: o.StatePath, LookupEnv: o.Files.LookupEnv, LockPath: o.Files.LockPath, Lock: o.Files.Lock,
	}
	c.Values = make(definition.VarValues, len(o.Files.Vars))
	for name, value := range o.Files.Vars {
		c.Values[name] = definition.VarValue(value)
	}
	for _, u := range o.Upstreams {
		c.Upstreams = append(c.Upstreams, u.block)
	}
	c.Production = o.Files.Production
	if o.Mode == Checking {
		c.Checks.Audit = func(a definition.Audit) error { return audit.CheckOutside(a.Path, loader.Path(o.Files.Tools)) }
	}
	if front := o.Front; front != nil {
		c.Checks.Item = func(i *catalog.Item) error { return front.CheckTool(metadataOf(i)) }
		c.Checks.Auth = func(blocks []definition.Auth) error { return front.CheckAuth(authsOf(blocks)) }
		c.Checks.TLS = func(t definition.ListenTLS) error { return front.CheckTLS(ListenTLS(t)) }
		c.Checks.Listen = func(l definition.Listen, auths []definition.Auth) error {
			return front.CheckListen(listenOf(l), authsOf(auths))
		}
	}
	return c
}

// policies returns the Go policies for the pipeline.
func (o Options) policies() []pipeline.Policy {
	policies := make([]pipeline.Policy, len(o.Policies))
	for i, policy := range o.Policies {
		policies[i] = policy.decide
	}
	return policies
}

// hooks returns the Go hooks for the pipeline.
func (o Options) hooks() []pipeline.Hook {
	hooks := make([]pipeline.Hook, len(o.Hooks))
	for i, hook := range o.Hooks {
		hooks[i] = pipeline.Hook(hook)
	}
	return hooks
}

// Dir returns the files below a directory. Unlike [os.DirFS], it follows no link out of the
// directory, and it keeps working if the directory is replaced.
func Dir(path string) fs.FS { return loader.Dir(path) }

// Extension is a part of mcpd that a program links only if it imports its package. The packages
// below extensions/ return extensions for [Options].Extensions. If a file needs a missing
// extension, a diagnostic names the package to import.
type Extension interface {
	// Name returns the package of the extension, such as "extensions/sqlite".
	Name() string
}

// Extensions returns [Options].Extensions. A front uses some of them itself, such as
// extensions/oidc.
func (s *Server) Extensions() []Extension { return slices.Clone(s.options.Extensions) }
