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
	"github.com/mcpd/mcpd/scripting"
)

// Options configure a [Server]. Only Name is required.
type Options struct {
	// Name and Version are the RFC's (section 7). The server block of the
	// operator's file overrides them and the three that follow.
	Name, Version string
	// Title is a name for people; Description says what the server is for;
	// Instructions tell a model how to use it.
	Title, Description, Instructions string
	// Transport is what package serve binds when it runs the server: "http"
	// (the default) or "stdio".
	Transport string

	// Extensions are the parts of mcpd that the server has beyond tools and policies in files
	// and in Go: the packages below extensions/ return them.
	Extensions []Extension

	// Files are the tool files and the operator's file, and Scripts say how their bodies run.
	Files   Files
	Scripts Scripts

	// StatePath is the file that keeps what must outlive a restart: the calls
	// that wait for their clients, kept values, and what fronts keep there: tasks.
	// It is made when it is first needed, and one process has it at a time.
	// Empty keeps it in memory. A path needs extensions/sqlite among Extensions.
	StatePath string
	// StateOptional says that what cannot be kept in the file is kept in memory,
	// with a warning in the log.
	StateOptional bool

	// Front looks at what the files have for a front, such as package serve: serve.Checks is
	// its own. Nil accepts everything.
	Front FrontChecks
	// Mode says what the program is for. The zero Mode serves.
	Mode Mode

	// Pending says that the program calls [Server.Began] once clients can come in. Until
	// then the audit log is told nothing of the server: a start that fails leaves no
	// record there.
	DeferReady bool

	// Upstreams are MCP servers whose tools are offered here, beside those that the
	// upstream blocks of the operator's file name.
	Upstreams []Upstream

	// Policies are asked in order, after those of the operator's file.
	Policies []Policy
	// Limits has the limit blocks of the files counted by a store of the program, which
	// several servers may share. Nil counts in the memory of this server.
	Limits *call.SharedLimits
	// Hooks fire in order, in line, before the hooks in files.
	Hooks []Hook
	// OnEvent is told what happens to the server. Of the server's methods it may
	// call Snapshot and Status alone.
	OnEvent func(Event)
	// Logger gets what the operator should know, without the values of secrets. Nil
	// discards it.
	Logger *slog.Logger
	// Veil hides the secrets of the server in other logs. It is for one server; nil
	// means that there are no others.
	LogRedactor *LogRedactor
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Files are the files of a [Server], and what they may refer to.
type Files struct {
	// Tools holds the tool files: [Dir], an embed.FS, or nil for none.
	Tools fs.FS
	// ToolsPath is how the folder is called in diagnostics. Default "tools.d".
	ToolsPath string
	// Config holds the operator's file, and ConfigPath names it there. A nil
	// Config, or a file that does not exist, means that there is none.
	Config     fs.FS
	ConfigPath string
	// Vars are values for variable blocks by name, as text.
	Vars map[string]VarValue
	// LookupEnv reads the environment for secret and env blocks; nil means an empty one.
	LookupEnv func(name string) (string, bool)
	// Production demands of the files what production mode does, whatever the operator's
	// file says.
	Production bool
	// LockPath is the file of the tools of upstreams as they were accepted: none is served
	// otherwise. A tool that is seen for the first time is written there before it is served,
	// if Options.Mode is zero. Empty pins nothing.
	LockPath string
}

// Scripts say how the bodies of files run, and what of the program they may use.
type Scripts struct {
	// Modules are objects of the program that files may grant to scripts.
	Modules []HostModule
	// Executor runs the bodies of files. Nil means [scripting.Inline], of which [New] warns
	// when there may be files: a body then runs in this process, and can end or hang it.
	// Package scripting/worker has an executor that keeps bodies in processes of their own.
	// A program that trusts its files names [scripting.Inline] here. The server closes it.
	Executor scripting.Executor
	// Programs runs what agents write, where the operator's file has a codeact block. Nil
	// means Executor if that is [scripting.Staffed], and else that each program is refused:
	// [scripting.Inline] has to be named here, as a program can end the process that runs it,
	// so that each agent is trusted which may call run_code. The server closes it, too: it is
	// another one than Executor.
	Programs scripting.Executor
	// Trial compiles large bodies elsewhere before this process does; see
	// [scripting.Source]. Nil means that nothing does.
	Trial func(scripting.Source) error
	// Supervisor is the command, with its own name, by which programs of exec grants
	// are run: `mcpd supervise`. Without it some of what they start may outlive them.
	Supervisor []string
}

// Mode says what a program does with a server. The zero Mode is for the program that serves:
// the audit log records its calls, and it writes to the file of [Files].LockPath.
type Mode int

const (
	serving Mode = iota
	// Beside is for programs beside the one that serves: they leave the audit block aside,
	// and write nothing to the file of LockPath.
	ReadOnly
	// Offline is Beside for programs that look at the files alone: no upstream server is
	// reached, and the tools of one are those in the file of LockPath.
	Offline
	// Checking is Offline, and loads look at what would keep the audit log from being opened.
	Checking
	// Eager is Beside for programs that compare with the file of LockPath, or are about to
	// change it: all upstream servers are reached, also those that are else reached when they
	// are called first, and the rules of files are not held to what was accepted.
	Eager
)

// offline reports whether no upstream server is reached.
func (m Mode) offline() bool { return m == Offline || m == Checking }

// FrontChecks say which parts of the files a front that serves the engine could not show or
// apply. Their errors are for the author of a tool or for the operator, and do not name the
// place.
type FrontChecks interface {
	// CheckTool returns why the front cannot show a tool.
	CheckTool(Metadata) error
	// CheckAuth returns why auth blocks cannot be applied together now, such as one whose
	// file cannot be read.
	CheckAuth([]Auth) error
	// CheckTLS returns why the front cannot listen by a tls block now. One that listens goes
	// on with what it has read, and accepts all from then on.
	CheckTLS(ListenTLS) error
	// CheckListen returns why the front would not listen on an address of the operator's
	// file, as the auth blocks are.
	CheckListen(Listen, []Auth) error
	// CheckVacant refuses the first load of files that have no mistakes, before anything of
	// them serves, another server is reached or the audit log is opened; Load returns its
	// error. The front may find that another program has the address.
	CheckVacant(Listen) error
}

// VarValue is the value that was given to a variable.
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

// programs returns what runs the programs of agents; nil for nothing.
func (o *Options) codeExecutor() scripting.Executor {
	if o.Scripts.Programs != nil {
		return o.Scripts.Programs
	}
	if staffed, ok := o.Scripts.Executor.(scripting.Staffed); ok {
		return staffed
	}
	return nil
}

// staffed returns what has processes for bodies, or else for programs; nil where neither has.
func (o *Options) workerExecutor() scripting.Staffed {
	for _, x := range []scripting.Executor{o.Scripts.Executor, o.Scripts.Programs} {
		if staffed, ok := x.(scripting.Staffed); ok {
			return staffed
		}
	}
	return nil
}

// closeExecutors closes what runs bodies and programs.
func (o *Options) closeExecutors() error {
	err := o.Scripts.Executor.Close()
	if o.Scripts.Programs == nil {
		return err
	}
	return errors.Join(err, o.Scripts.Programs.Close())
}

// catalog returns what the server's catalogs are made of.
func (o Options) catalog(runner *hooks.Runner, brokers host.Brokers) catalog.Options {
	c := catalog.Options{
		Server: definition.Server{Name: o.Name, Version: o.Version, Title: o.Title, Description: o.Description, Instructions: o.Instructions},
		Tools:  o.Files.Tools, ToolsPath: o.Files.ToolsPath, Config: o.Files.Config, ConfigPath: o.Files.ConfigPath,
		Trial: o.Scripts.Trial, GoPolicies: len(o.Policies), Runner: runner, Modules: brokers.Modules, StatePath: o.StatePath, LookupEnv: o.Files.LookupEnv, LockPath: o.Files.LockPath,
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
		c.Checks.Audit = func(a definition.Audit) error { return checkAuditPath(a.Path, o.Files.Tools) }
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

// policies returns the policies as the pipeline asks them.
func (o Options) policies() []pipeline.Policy {
	asked := make([]pipeline.Policy, 0, len(o.Policies))
	for _, policy := range o.Policies {
		asked = append(asked, policy.decide)
	}
	return asked
}

// hooks returns the hooks as the pipeline fires them.
func (o Options) hooks() []pipeline.Hook {
	fired := make([]pipeline.Hook, len(o.Hooks))
	for i, hook := range o.Hooks {
		fired[i] = pipeline.Hook(hook)
	}
	return fired
}

// Dir returns the files below a folder of the disk. Unlike [os.DirFS] it
// follows no link out of the folder, and it survives the folder being replaced
// by another of the same name.
func Dir(path string) fs.FS { return loader.Dir(path) }

// Extension is a part of mcpd that a program links only if it imports it. The packages below
// extensions/ return extensions, for [Options].Extensions. A file that uses a part which the
// program does not have gets a diagnostic that names the package to import.
type Extension interface {
	// Name returns the package that the extension comes from, as in "extensions/sqlite".
	Name() string
}

// Extensions returns [Options].Extensions, for fronts: an extension may be theirs, such as
// the one that checks tokens.
func (s *Server) Extensions() []Extension { return slices.Clone(s.options.Extensions) }
