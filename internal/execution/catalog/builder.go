// Package catalog builds the catalog of a server from files.
//
// A [Builder] reads the tools directory and mcpd.hcl, compiles new definitions, and links all of
// them. The result is a [Catalog]. It is immutable, and holds the policies, limits and hooks of
// each [Item]. Build returns all diagnostics at once. Whether a catalog is served, and how calls
// run, is decided elsewhere.
//
// Start at [Builder.Build] in builder.go: item_compile.go compiles, link.go links,
// policy_binding.go binds policies to items, and overlay.go adds the offers of upstream servers to
// the [Base]. The parts for calls are in item.go and script.go.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
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

// Options configure a [Builder].
type Options struct {
	// Server has the metadata that mcpd.hcl does not set.
	Server definition.Server
	// Tools has the tool files, or is nil. ToolsPath names the directory in diagnostics.
	Tools     fs.FS
	ToolsPath string
	// Config has mcpd.hcl at ConfigPath, or is nil.
	Config     fs.FS
	ConfigPath string
	Values     definition.VarValues
	// Trial is passed to [scripting.Source].
	Trial func(scripting.Source) error
	// Transpiler is passed to [scripting.Source]. If it is nil, scripts that need it are rejected.
	Transpiler scripting.Transpiler
	Checks     Checks
	// Modules are the Go functions that the embedding program offers to scripts.
	Modules *gomodule.Broker
	// Production enforces the rules of production mode, whatever mcpd.hcl declares.
	Production bool
	// Accepted returns the upstream tools that the lock file accepts, under the names that the
	// blocks give them. Nil accepts nothing.
	Accepted func(blocks []definition.Upstream, lock LockFile) Accepted
	// LockPath is the resolved path of the lock file; "" for none. Lock holds it by its base name;
	// nil is the directory on disk.
	LockPath string
	Lock     fs.FS
	// Codeact returns the items of a codeact block. If it is nil, the block is rejected.
	Codeact func(*definition.Codeact) []*Item
	// Upstreams are servers that the program adds to the upstream blocks.
	Upstreams  []definition.Upstream
	GoPolicies int
	Runner     *hooks.Runner
	// StatePath is the state file; empty if the state is in memory.
	StatePath string
	// NoTokens reports that the program cannot check tokens of identity providers.
	NoTokens bool
	// NoDriver maps the drivers of sql grants that the program lacks to the packages to import.
	NoDriver map[string]string
	// SharedResults returns the results that replicas share, or nil. Nil is a function that returns nil.
	SharedResults func() state.Results
	// Now is the clock of calls. It is required with SharedResults.
	Now func() time.Time
	// LookupEnv reads the environment; nil means an empty environment.
	LookupEnv func(name string) (string, bool)
}

// Checks validate definitions for the front. A nil check accepts everything.
type Checks struct {
	// Item rejects items that clients cannot display.
	Item func(*Item) error
	// Auth rejects auth blocks that cannot be applied together. TLS rejects a tls block with
	// unusable files.
	Auth func([]definition.Auth) error
	TLS  func(definition.ListenTLS) error
	// Listen rejects an address that unauthenticated clients could reach, given the auth blocks.
	Listen func(definition.Listen, []definition.Auth) error
	// Audit rejects an audit block with a log that cannot be opened.
	Audit func(definition.Audit) error
}

// Builder builds catalogs. It caches files and compiled results, so that a build repeats only the
// changed parts. Builds run one at a time.
type Builder struct {
	options Options
	// maxPolicies bounds the policies that a build compiles.
	maxPolicies int
	tree        *loader.Tree
	config      *loader.Config
	// served is the configuration of the serving catalog.
	served *loader.Config
	cache  buildCache
	// base was built last; results are the cached tool results of the serving catalog.
	base    *Base
	results *results
	// lock is the lock file that base was built with, and accepted its content. servedLock is the
	// lock file of the last build that was served.
	lock, servedLock *loader.Lock
	accepted         Accepted
	// readAll makes the next build read all files.
	readAll bool
	// stages are the compile caches of the test stages, by name.
	stages map[string]buildCache
	// codeactItems are the items of the codeact block with a hash.
	codeactItems struct {
		of    definition.Hash
		items []*Item
	}
}

// New returns a builder. It reads no files until [Builder.Build].
func New(o Options) *Builder {
	return &Builder{options: o, maxPolicies: maxPolicies, tree: loader.New(o.Tools, o.ToolsPath), results: resultcache.New[scripting.Result]()}
}

// Reset discards all caches. The next build reads all files.
func (b *Builder) Reset() {
	b.tree, b.config, b.cache, b.stages = loader.New(b.options.Tools, b.options.ToolsPath), nil, buildCache{}, nil
	b.base, b.lock, b.accepted, b.readAll = nil, nil, Accepted{}, true
	b.codeactItems.of, b.codeactItems.items = definition.Hash{}, nil
}

// Change says which files a build must read again.
type Change struct {
	// Paths are files, relative to the tools directory, that may have been changed, added or
	// removed.
	Paths []string
	// Config reports that mcpd.hcl may have changed.
	Config bool
	// All reports that anything may have changed.
	All bool
}

// Result is the result of a build.
type Result struct {
	// Base is nil if the variables are invalid. If Problems has an error, Base must not be served.
	Base     *Base
	Problems diag.List
	Sources  Sources
	// FailedAuth are the auth blocks that cannot be applied now.
	FailedAuth []definition.Auth
}

// Sources are the files that a build has read.
type Sources struct {
	tools  loader.Sources
	others map[string][]byte // mcpd.hcl and files beside it, by their names in diagnostics
}

func (s Sources) content(name string) (content []byte, ok bool) {
	if content, ok = s.others[name]; !ok {
		content, ok = s.tools.Content(name)
	}
	return content, ok
}

// Project returns the contents of all files, by their paths in a project: tool files below tools.d,
// and mcpd.hcl and the files beside it. Missing files are left out.
func (s Sources) Project() map[string][]byte {
	files := map[string][]byte{}
	for name, content := range s.tools.All() {
		files["tools.d/"+name] = content
	}
	for name, content := range s.others {
		if content != nil {
			files[path.Base(name)] = content
		}
	}
	return files
}

// Shown returns the files with diagnostics, with secrets masked by [hclfile.RedactSecrets]. For a large
// file this takes longer than the diagnostics themselves.
func (s Sources) Shown(problems diag.List) map[string][]byte {
	masked := map[string][]byte{}
	for _, p := range problems {
		name := p.Range.File
		if content, read := s.content(name); read && masked[name] == nil {
			masked[name] = hclfile.RedactSecrets(name, content)
		}
	}
	return masked
}

// SecretLiterals returns the literals that [Sources.Shown] masks, of all files.
func (s Sources) SecretLiterals() (literals []string) {
	for name, content := range s.Project() {
		literals = append(literals, hclfile.SecretLiterals(name, content)...)
	}
	return literals
}

// Source returns the source of the top-level block at a range in the files of the catalog, with
// secrets masked as in [Sources.Shown]. It is empty if the range is in no block.
func (c *Catalog) Source(where diag.Range) string {
	sources, kind := c.base.sources, hclfile.ToolsKind
	if _, isConfig := sources.others[where.File]; isConfig {
		kind = hclfile.ConfigKind
	}
	content, _ := sources.content(where.File)
	return hclfile.BlockSource(where.File, content, kind, where.Start.Byte)
}

// File returns a file of the catalog by its name in diagnostics, and its text with secrets masked as in
// [Sources.Shown]. ok is false if there is no such file, or if it is too large to mask.
func (c *Catalog) File(name string) (content, shown []byte, ok bool) {
	if content, ok = c.base.sources.content(name); ok && content != nil {
		shown = hclfile.RedactSecrets(name, content)
	}
	return content, shown, shown != nil
}

// buildState is the state of one build.
type buildState struct {
	config *definition.Config
	env    *policylang.Env
	vars   []byte
	roots  *loader.Resolver
	// authors and operators are the defaults for definitions without limits.
	authors, operators callDefaults
	blocks
	builtItems
	federated
	diagnostics
}

// blocks are the blocks of tool files that define no item, in the order of the files.
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
	granted []grant.Set // to scripts, with resolved paths
}

// federated is the static information about upstream servers.
type federated struct {
	// upstreams are the upstream blocks with resolved paths. names assigns item names to upstreams.
	upstreams []definition.Upstream
	names     *names
	// lock is the lock file, and accepted its content.
	lock     *loader.Lock
	accepted Accepted
	// references are names and patterns that only an upstream server can resolve.
	references []configcheck.Reference
}

// diagnostics collects the diagnostics of a build. It is safe for concurrent use.
type diagnostics struct {
	failedAuth []definition.Auth // auth blocks that cannot be applied

	mu       sync.Mutex
	problems diag.List
}

func (d *diagnostics) report(problems diag.List) {
	if len(problems) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = append(d.problems, problems...)
}

// Accepted is the content of the lock file.
type Accepted struct {
	// Items are the accepted tools. Known has the names of all tools in the file, including those
	// that are no valid item.
	Items []*Item
	Known []ToolName
	// Upstreams are the upstreams with complete tool lists in the file.
	Upstreams []string
	Problems  diag.List
}

// ToolName is the name of an upstream tool for callers.
type ToolName struct{ Upstream, Name string }

// LockFile is the lock file of accepted upstream tools.
type LockFile struct {
	// Name is the name in diagnostics; "" if there is no lock file.
	Name string
	// Text is nil if the file does not exist. Unreadable reports that it could not be read.
	Text       []byte
	Unreadable bool
}

// maxRereads bounds the builds that start again because directories were replaced meanwhile.
const maxRereads = 5

// Build reads the changed files, parses and compiles new definitions, and links them with the
// registered items. If a mounted volume or a linked directory is replaced meanwhile, Build starts
// again, at most maxRereads times, so that the result does not mix old and new files.
func (b *Builder) Build(change Change, registered []*Item) Result {
	result := b.build(change, registered)
	for i := 0; i < maxRereads && (b.tree.Swapped() || b.config.Swapped()); i++ {
		result = b.build(Change{All: true}, registered)
	}
	return result
}

func (b *Builder) build(change Change, registered []*Item) Result {
	change.All = change.All || b.readAll
	if b.config == nil || change.All || change.Config {
		read := loader.ReadConfig(b.options.Config, b.options.ConfigPath, b.options.Values)
		read.CheckMissing(b.served)
		b.config = read
	}
	b.tree.Update(change.Paths, change.All)
	state := b.newBuild(loader.ReadLock(b.options.Lock, b.options.LockPath))
	state.report(state.lock.Problems)
	if b.options.Accepted != nil {
		state.accepted = b.options.Accepted(state.upstreams, lockFile(state.lock))
		state.report(state.accepted.Problems)
	}
	defined, problems := b.tree.Definitions(state.config)
	state.report(problems)
	result := Result{Base: b.assemble(state, defined, registered)}
	state.report(configcheck.CheckHost(state.config, defined, b.hostPaths(state.roots)))
	if result.Base != nil {
		result.Base.Definitions = privdiff.Snapshot{
			Config: state.config, Files: defined, ToolsDir: loader.Path(b.options.Tools), ConfigDir: loader.Path(b.options.Config), ResolvePath: state.roots.Resolve, FileHashes: b.tree.ReferencedFiles(),
		}
	}
	state.report(b.tree.CheckGroup())
	if state.config.Server.Mode == definition.Production {
		state.report(b.config.CheckOwner())
		state.report(b.tree.CheckOwner())
		state.report(state.lock.CheckOwner())
	}
	result.Sources = Sources{b.tree.Sources(), map[string][]byte{}}
	maps.Copy(result.Sources.others, b.config.Sources)
	if state.lock.Bytes != nil {
		result.Sources.others[state.lock.Name] = state.lock.Bytes
	}
	if state.config.Incomplete { // scripts may refer to variables in blocks that could not be parsed
		state.problems = slices.DeleteFunc(state.problems, func(d diag.Diagnostic) bool { return d.Code == "unknown-variable" })
	}
	if result.Base != nil {
		result.Base.sources = result.Sources
	}
	result.Problems, result.FailedAuth, b.base = state.problems.Sort(), state.failedAuth, result.Base
	b.lock, b.accepted, b.readAll = state.lock, state.accepted, false
	return result
}

func lockFile(l *loader.Lock) LockFile {
	return LockFile{l.Name, l.Bytes, l.Problems.HasErrors()}
}

// BuildServed notes whether the last build is served. If it is not, and its lock file was part of the
// files ([Options].Lock), the lock file of the serving catalog is in effect again.
func (b *Builder) BuildServed(ok bool, serving *Catalog) {
	switch {
	case ok:
		b.servedLock = b.lock
	case b.options.Lock != nil && b.options.Accepted != nil && b.servedLock != nil:
		b.options.Accepted(serving.Upstreams, lockFile(b.servedLock))
	}
}

func (b *Builder) newBuild(lock *loader.Lock) *buildState {
	config := b.config.Config
	if b.options.Production && config.Server.Mode != definition.Production {
		strict := *config
		strict.Server.Mode = definition.Production
		config = &strict
	}
	config, duplicates := b.addUpstreams(config)
	state := &buildState{
		config: config, vars: b.config.Config.VarsJSON(), roots: &loader.Resolver{}, authors: authorDefaults(b.config.Config), operators: operatorDefaults(b.config.Config),
		federated: federated{upstreams: b.resolveUpstreams(config.Upstreams), lock: lock},
	}
	state.names = newNames(state.upstreams)
	state.report(b.config.Problems)
	state.report(duplicates)
	return state
}

// assemble checks, compiles and links the definitions. It returns nil if the variables are invalid.
func (b *Builder) assemble(state *buildState, defined []*definition.Definitions, registered []*Item) *Base {
	registered = slices.Concat(registered, b.codeItems(state))
	for _, d := range defined {
		state.policies = append(state.policies, d.Policies...)
		state.limits = append(state.limits, d.Limits...)
		state.hookDefs = append(state.hookDefs, d.Hooks...)
		state.tests = append(state.tests, d.Tests...)
	}
	external := b.externalItems(state, registered)
	if err := b.prepareEnv(state); err != nil {
		state.report(configcheck.Check(state.config, defined, external))
		state.report(diag.List{{Code: "bad-variables", Summary: "the variables cannot be used in policies: " + err.Error(), Range: state.config.Range}})
		return nil
	}
	var problems diag.List
	// The two only read the definitions, and take equally long after a small change.
	steps := []func(){func() { b.compile(defined, state) }, func() { problems = configcheck.Check(state.config, defined, external) }}
	loader.Parallel(len(steps), func(i int) { steps[i]() })
	state.report(problems)
	return b.link(state, registered)
}

// externalItems returns the items that no file defines.
func (b *Builder) externalItems(state *buildState, registered []*Item) configcheck.External {
	e := configcheck.External{Modules: b.options.Modules, Incomplete: b.tree.Incomplete(), Locked: state.accepted.Upstreams, Refer: func(r configcheck.Reference) { state.references = append(state.references, r) }}
	for _, item := range registered {
		e.Names = append(e.Names, configcheck.ExternalName{Kind: item.Kind.String(), Name: item.Name, Range: item.Where})
	}
	for name, upstream := range state.names.accepted(state.accepted.Known) {
		e.Names = append(e.Names, configcheck.ExternalName{Kind: Tools.String(), Name: name, Upstream: upstream})
	}
	return e
}

// codeItems returns the items of the codeact block.
func (b *Builder) codeItems(state *buildState) []*Item {
	block := state.config.Codeact
	switch {
	case block == nil:
		return nil
	case b.options.Codeact == nil:
		state.report(diag.List{{
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

// MarkServed notes that a catalog is now serving. Cached results of removed or changed
// tools are discarded.
func (b *Builder) MarkServed(c *Catalog) {
	b.served = c.base.config
	if n, _ := b.results.Len(); n > 0 {
		b.results.Retain(itemKeys(c))
	}
}

// prepareEnv resets the cache if the variables have changed, as scripts and policies are compiled
// against their values.
func (b *Builder) prepareEnv(state *buildState) error {
	types := state.config.VarsSchema()
	vars := string(state.vars) + string(types)
	if b.cache.env != nil && b.cache.vars == vars {
		state.env = b.cache.env
		return nil
	}
	env, err := policylang.NewEnv(types, state.vars)
	if err == nil {
		state.env, b.cache = env, buildCache{env: env, vars: vars}
	}
	return err
}

// revision hashes all parts of a catalog. items are the items that no file defines.
func (b *Builder) revision(state *buildState, items []*Item) string {
	h := sha256.New()
	files := b.tree.Hash()
	h.Write(files[:])
	h.Write(b.config.Hash[:])
	h.Write(state.vars)
	h.Write(state.resolvedRoots())
	for _, item := range items {
		h.Write([]byte(item.Name + "\x00"))
		h.Write(item.Key[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
