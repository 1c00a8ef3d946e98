package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/crossref"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/policylang"
)

// loader turns files into parts of a snapshot. It remembers what it read and
// compiled, so that the next load repeats only what has changed. Loads run one
// at a time.
type loader struct {
	options Options
	runner  *hooks.Runner
	tree    *source.Tree
	config  *source.Config
	// served is the operator's file of the snapshot that serves.
	served *source.Config
	cache  compileCache
}

// loading is what one load has found so far.
type loading struct {
	config   *hclfile.Config
	env      *policylang.Env
	vars     []byte
	sources  map[string][]byte
	revision string

	tools    []*Tool
	policies []hclfile.Policy // those of tool files, in order
	hooks    []*hook
	tests    []hclfile.Test

	mu       sync.Mutex
	problems diag.List
}

func (l *loading) report(problems diag.List) {
	if len(problems) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, problems...)
}

func newLoader(options Options, runner *hooks.Runner) *loader {
	return &loader{options: options, runner: runner, tree: source.New(options.Tools, options.ToolsPath)}
}

// load reads what the change names, and parses and compiles all that is new.
func (l *loader) load(change Change, registered []*Tool) *loading {
	if l.config == nil || change.All || change.Config {
		read := source.ReadConfig(l.options.Config, l.options.ConfigPath, l.options.Vars)
		read.Guard(l.served)
		l.config = read
	}
	l.tree.Update(change.Paths, change.All)
	found := &loading{config: l.config.Config, vars: l.config.Config.VarsJSON(), sources: map[string][]byte{}}
	found.report(l.config.Problems)
	defined, problems := l.tree.Definitions(found.config)
	found.report(problems)
	found.report(crossref.Check(found.config, defined, namesOf(registered)))
	for _, d := range defined {
		found.policies = append(found.policies, d.Policies...)
		found.tests = append(found.tests, d.Tests...)
	}
	if err := l.renew(found); err != nil {
		found.report(diag.List{{Code: "bad-variables", Summary: "the variables cannot be used in policies: " + err.Error(), Range: found.config.Range}})
	} else {
		l.compile(defined, found)
	}
	found.revision = l.revision(found, registered)
	maps.Copy(found.sources, l.config.Sources)
	l.tree.AddSources(found.sources)
	return found
}

func namesOf(tools []*Tool) []hclfile.Name {
	names := make([]hclfile.Name, len(tools))
	for i, tool := range tools {
		names[i] = hclfile.Name{Text: tool.metadata.Name, Range: tool.where}
	}
	return names
}

// renew forgets everything that was compiled when the variables have changed,
// since scripts and policies are compiled against their values.
func (l *loader) renew(found *loading) error {
	if l.cache.env != nil && l.cache.vars == string(found.vars) {
		found.env = l.cache.env
		return nil
	}
	env, err := policylang.NewEnv(found.config.VarsSchema(), found.vars)
	if err == nil {
		found.env, l.cache = env, compileCache{env: env, vars: string(found.vars)}
	}
	return err
}

// revision is a hash of everything that the snapshot is made of. The values of
// secrets are not part of it.
func (l *loader) revision(found *loading, registered []*Tool) string {
	h := sha256.New()
	files := l.tree.Hash()
	h.Write(files[:])
	h.Write(l.config.Hash[:])
	h.Write(found.vars)
	for _, tool := range registered {
		h.Write([]byte(tool.metadata.Name + "\x00"))
		h.Write(tool.key[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
