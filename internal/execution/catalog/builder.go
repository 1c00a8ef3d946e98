// Package catalog makes of files what a server offers.
//
// A [Builder] reads the tools folder and the operator's file, compiles every
// definition that is new, and links all of them together. What comes out is a
// [Catalog]: immutable, and complete with the policies and hooks that concern
// each [Item]. Everything that is wrong in any file comes out with it, at once;
// whether such a catalog is served is decided elsewhere, and so is everything
// about a call.
//
// Start at [Builder.Build] in builder.go: item_compile.go compiles, link.go links,
// policy_binding.go binds rules, and overlay.go lays the offers of upstream servers over the
// [Base]. What a call needs is in item.go and script.go.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/execution/resultcache"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Options say what catalogs are made of.
type Options struct {
	// Server is what the server says of itself where the operator's file does not.
	Server definition.Server
	// Tools holds the tool files, or is nil; ToolsPath is how the folder is
	// called in diagnostics.
	Tools     fs.FS
	ToolsPath string
	// Config holds the operator's file at ConfigPath, or is nil.
	Config     fs.FS
	ConfigPath string
	Values     definition.VarValues
	// Trial is that of [scripting.Source].
	Trial func(scripting.Source) error
	// Transpiler is that of [scripting.Source]. Nil refuses what needs it.
	Transpiler scripting.Transpiler
	Checks     Checks
	// Modules are the objects of the embedding program that scripts may be granted.
	Modules *gomodule.Broker
	// Production demands what production mode does, whatever the operator's file says.
	Production bool
	// Accepted returns what the lock file accepts of upstream servers, as the blocks would
	// have it offered here. Nil accepts nothing.
	Accepted func(blocks []definition.Upstream, lock LockFile) Accepted
	// LockPath is the file of what was accepted of upstream servers, as the process opens
	// it; "" for none.
	LockPath string
	// Codeact returns what lets agents write code, as the block would have it. Nil refuses
	// the block.
	Codeact func(*definition.Codeact) []*Item
	// Upstreams are those that the program names, beside the blocks of the operator's file.
	Upstreams  []definition.Upstream
	GoPolicies int
	Runner     *hooks.Runner
	// StatePath is the file that keeps state, empty when none does.
	StatePath string
	// NoTokens says that the program cannot check tokens of identity providers.
	NoTokens bool
	// NoDriver has the drivers of sql grants that the program lacks, with the package to
	// import for each.
	NoDriver map[string]string
	// LookupEnv reads the environment of the process; nil means an empty one.
	LookupEnv func(name string) (string, bool)
}

// Checks refuse what the program could not show or apply; a check that is nil refuses nothing.
type Checks struct {
	// Item refuses items that cannot be shown to clients.
	Item func(*Item) error
	// Auth refuses auth blocks that cannot be applied together, and TLS a tls block by which
	// nobody could listen now.
	Auth func([]definition.Auth) error
	TLS  func(definition.ListenTLS) error
	// Listen refuses a listen block by which strangers would come in, as the auth blocks are.
	Listen func(definition.Listen, []definition.Auth) error
	// Audit refuses an audit block whose log cannot be opened.
	Audit func(definition.Audit) error
}

// Builder makes catalogs. It remembers what it read and compiled, so that the
// next build repeats only what has changed. Builds run one at a time.
type Builder struct {
	options Options
	// maxPolicies bounds the policies that a build compiles.
	maxPolicies int
	tree        *loader.Tree
	config      *loader.Config
	// served is the operator's file of the catalog that serves.
	served *loader.Config
	cache  buildCache
	// base was built last; results are those of the tools of what serves.
	base    *Base
	results *results
	// lock is the lock file that base is of, and accepted what it says.
	lock     *loader.Lock
	accepted Accepted
	// reread: the next build reads all files.
	readAll bool
	// stages is what was compiled for the stages of tests, by their names.
	stages map[string]buildCache
	// coded are the items that let agents write code, of the block of a hash.
	codeactItems struct {
		of    definition.Hash
		items []*Item
	}
}

func New(o Options) *Builder {
	return &Builder{options: o, maxPolicies: maxPolicies, tree: loader.New(o.Tools, o.ToolsPath), results: resultcache.New[scripting.Result]()}
}

// Reset forgets what earlier builds have read and compiled. The next build reads everything.
func (b *Builder) Reset() {
	b.tree, b.config, b.cache, b.stages = loader.New(b.options.Tools, b.options.ToolsPath), nil, buildCache{}, nil
	b.base, b.lock, b.accepted, b.readAll = nil, nil, Accepted{}, true
	b.codeactItems.of, b.codeactItems.items = definition.Hash{}, nil
}

// Change says what a build has to look at again.
type Change struct {
	// Paths are files of the tools folder, relative to it, that may have
	// changed, come or gone.
	Paths []string
	// Config says that the operator's file may have changed.
	Config bool
	// All says that anything may have changed.
	All bool
}

// Result is what a build found.
type Result struct {
	// Base is nil when not even the variables are sound. When Problems hold
	// an error, it must not be served.
	Base     *Base
	Problems diag.List
	Sources  Sources
	// Refused are the auth blocks that cannot be applied as what they name is now.
	FailedAuth []definition.Auth
}

// Sources are the files that a build has read, by the names that problems use.
type Sources map[string][]byte

// Shown returns the files that have problems as they may be shown ([hclfile.Shown]),
// which costs more than to find the problems of a large one.
func (s Sources) Shown(problems diag.List) map[string][]byte {
	shown := map[string][]byte{}
	for _, p := range problems {
		name := p.Range.File
		if content, read := s[name]; read && shown[name] == nil {
			shown[name] = hclfile.RedactSecrets(name, content)
		}
	}
	return shown
}

// build is one build on its way: what it has read and compiled, and what is wrong with it.
type build struct {
	config *definition.Config
	env    *policylang.Env
	vars   []byte
	roots  *loader.Resolver
	// authors and operators are what stands for what says no bounds.
	authors, operators callDefaults
	blocks
	builtItems
	federated
	diagnostics
}

// blocks are those of tool files that define no item, in the order of the files.
type blocks struct {
	policies []definition.Policy
	limits   []definition.Limit
	hookDefs []definition.Hook
	tests    []definition.Test
}

// builtItems are the items and hooks of all files, in the order of the files.
type builtItems struct {
	items   []*Item
	hooks   []*Hook
	granted []grant.Set // to bodies, with the places that their paths lead to
}

// federated is what is known of upstream servers without asking them.
type federated struct {
	// upstreams are the upstream blocks, with paths as the process opens them, and names what
	// they may call things.
	upstreams []definition.Upstream
	names     *names
	// lock is the file of what was accepted of those, and accepted what it says.
	lock     *loader.Lock
	accepted Accepted
	// references are names and patterns that only upstream servers can say something about.
	references []configcheck.Reference
}

// mistakes are what is wrong with the files. They are safe for concurrent use.
type diagnostics struct {
	failedAuth []definition.Auth // auth blocks that cannot be applied

	mu       sync.Mutex
	problems diag.List
}

func (m *diagnostics) report(problems diag.List) {
	if len(problems) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = append(m.problems, problems...)
}

// Accepted is what the lock file accepts of upstream servers.
type Accepted struct {
	// Items are the tools as they were accepted, and Known are the names of all of them, also
	// of those that are no item.
	Items []*Item
	Known []ToolName
	// Upstreams are those of which it knows all tools.
	Upstreams []string
	Problems  diag.List
}

// ToolName is how callers call a tool of an upstream server.
type ToolName struct{ Upstream, Name string }

// LockFile is the file of what was accepted of upstream servers.
type LockFile struct {
	// Name is how diagnostics call it; "" where none is kept.
	Name string
	// Text is nil where there is no file. Unreadable says that it cannot be read.
	Text       []byte
	Unreadable bool
}

// Build reads what the change names, parses and compiles all that is new, and
// links it together with the items that are registered from elsewhere.
func (b *Builder) Build(change Change, registered []*Item) Result {
	change.All = change.All || b.readAll
	if b.config == nil || change.All || change.Config {
		read := loader.ReadConfig(b.options.Config, b.options.ConfigPath, b.options.Values)
		read.CheckMissing(b.served)
		b.config = read
	}
	b.tree.Update(change.Paths, change.All)
	found := b.newBuild(loader.ReadLock(b.options.LockPath))
	found.report(found.lock.Problems)
	if b.options.Accepted != nil {
		found.accepted = b.options.Accepted(found.upstreams, LockFile{found.lock.Name, found.lock.Bytes, found.lock.Problems.HasErrors()})
		found.report(found.accepted.Problems)
	}
	defined, problems := b.tree.Definitions(found.config)
	found.report(problems)
	result := Result{Base: b.assemble(found, defined, registered), Sources: Sources{}}
	found.report(configcheck.CheckHost(found.config, defined, b.places(found.roots)))
	if result.Base != nil {
		result.Base.Definitions = privdiff.Snapshot{
			Config: found.config, Files: defined, ToolsDir: loader.Path(b.options.Tools), ConfigDir: loader.Path(b.options.Config), ResolvePath: found.roots.Resolve, FileHashes: b.tree.ReferencedFiles(),
		}
	}
	found.report(b.tree.CheckGroup())
	if found.config.Server.Mode == definition.Production {
		found.report(b.config.CheckOwner())
		found.report(b.tree.CheckOwner())
		found.report(found.lock.CheckOwner())
	}
	maps.Copy(result.Sources, b.config.Sources)
	if found.lock.Bytes != nil {
		result.Sources[found.lock.Name] = found.lock.Bytes
	}
	b.tree.AddSources(result.Sources)
	if found.config.Incomplete { // scripts may refer to variables whose blocks could not be parsed
		found.problems = slices.DeleteFunc(found.problems, func(d diag.Diagnostic) bool { return d.Code == "unknown-variable" })
	}
	result.Problems, result.FailedAuth, b.base = found.problems.Sort(), found.failedAuth, result.Base
	b.lock, b.accepted, b.readAll = found.lock, found.accepted, false
	return result
}

func (b *Builder) newBuild(lock *loader.Lock) *build {
	config := b.config.Config
	if b.options.Production && config.Server.Mode != definition.Production {
		strict := *config
		strict.Server.Mode = definition.Production
		config = &strict
	}
	config, twice := b.addUpstreams(config)
	found := &build{
		config: config, vars: b.config.Config.VarsJSON(), roots: &loader.Resolver{}, authors: authorDefaults(b.config.Config), operators: operatorDefaults(b.config.Config),
		federated: federated{upstreams: b.resolveUpstreams(config.Upstreams), lock: lock},
	}
	found.names = newNames(found.upstreams)
	found.report(b.config.Problems)
	found.report(twice)
	return found
}

// join checks, compiles and links what the files define. It returns nil when not even the
// variables are sound.
func (b *Builder) assemble(found *build, defined []*definition.Definitions, registered []*Item) *Base {
	registered = slices.Concat(registered, b.codeItems(found))
	found.report(configcheck.Check(found.config, defined, b.externalItems(found, registered)))
	found.report(configcheck.CheckModules(found.config, defined, b.options.Modules))
	for _, d := range defined {
		found.policies = append(found.policies, d.Policies...)
		found.limits = append(found.limits, d.Limits...)
		found.hookDefs = append(found.hookDefs, d.Hooks...)
		found.tests = append(found.tests, d.Tests...)
	}
	if err := b.prepareEnv(found); err != nil {
		found.report(diag.List{{Code: "bad-variables", Summary: "the variables cannot be used in policies: " + err.Error(), Range: found.config.Range}})
		return nil
	}
	b.compile(defined, found)
	return b.link(found, registered)
}

// elsewhere returns what no file defines.
func (b *Builder) externalItems(f *build, registered []*Item) configcheck.External {
	e := configcheck.External{Incomplete: b.tree.Incomplete(), Locked: f.accepted.Upstreams, Refer: func(r configcheck.Reference) { f.references = append(f.references, r) }}
	for _, item := range registered {
		e.Names = append(e.Names, configcheck.ExternalName{Kind: item.Kind.String(), Name: item.Name, Range: item.Where})
	}
	for name, upstream := range f.names.accepted(f.accepted.Known) {
		e.Names = append(e.Names, configcheck.ExternalName{Kind: Tools.String(), Name: name, Upstream: upstream})
	}
	return e
}

// code returns the items that let agents write code.
func (b *Builder) codeItems(found *build) []*Item {
	block := found.config.Codeact
	switch {
	case block == nil:
		return nil
	case b.options.Codeact == nil:
		found.report(diag.List{{
			Code: "missing-extension", Range: block.Range, Summary: "this program has no code mode",
			Detail: "import github.com/mcpd/mcpd/extensions/codemode into the program, and add codemode.New() to engine.Options.Extensions",
		}})
		return nil
	}
	if b.codeactItems.of != block.Hash {
		b.codeactItems.of, b.codeactItems.items = block.Hash, b.options.Codeact(block)
	}
	return b.codeactItems.items
}

// Served tells the builder that a catalog serves now. The results of tools that are gone, or
// others, are forgotten.
func (b *Builder) Commit(c *Catalog) {
	b.served = c.base.config
	b.results.Retain(keysOf(c))
}

// renew forgets everything that was compiled when the variables have changed,
// since scripts and policies are compiled against their values.
func (b *Builder) prepareEnv(found *build) error {
	types := found.config.VarsSchema()
	vars := string(found.vars) + string(types)
	if b.cache.env != nil && b.cache.vars == vars {
		found.env = b.cache.env
		return nil
	}
	env, err := policylang.NewEnv(types, found.vars)
	if err == nil {
		found.env, b.cache = env, buildCache{env: env, vars: vars}
	}
	return err
}

// revision hashes all that a catalog is made of: items are those that no file defines.
func (b *Builder) revision(found *build, items []*Item) string {
	h := sha256.New()
	files := b.tree.Hash()
	h.Write(files[:])
	h.Write(b.config.Hash[:])
	h.Write(found.vars)
	h.Write(found.resolvedRoots())
	for _, item := range items {
		h.Write([]byte(item.Name + "\x00"))
		h.Write(item.Key[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
