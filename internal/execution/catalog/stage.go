package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// maxStages bounds the distinct sets of variable values in tests. Everything is compiled once per
// set.
const maxStages = 32

// Stage is the catalog with the variable values of a test.
type Stage struct {
	// catalog is never served. It is unused if problems has an error.
	catalog  *Catalog
	problems diag.List
}

// Stage builds the stages for the tests of a catalog, which must have the base that was built last.
// A test with its own variable values runs on the catalog that a server started with these values
// would have. The disk is not accessed again: a test uses no paths, so it does not matter whether
// the paths of other values exist here.
func (b *Builder) Stage(c *Catalog, registered []*Item) {
	caches := b.stages
	b.stages = map[string]buildCache{}
	c.stages = map[string]*Stage{}
	for i := range c.Tests {
		test := &c.Tests[i]
		name := stageOf(test)
		if name == "" || c.stages[name] != nil {
			continue
		}
		if len(c.stages) == maxStages {
			break
		}
		c.stages[name] = b.stage(c, name, test.Vars, caches[name], registered)
	}
	b.tree.KeepStages(func(name string) bool { return c.stages[name] != nil })
}

// EnsureStages builds the stages of a serving catalog. They use the files as last read. If these no
// longer match the catalog, tests with their own values have no stage.
func (b *Builder) EnsureStages(c *Catalog, registered []*Item) {
	if c.stages == nil && b.base != nil && b.base.Revision == c.base.Revision {
		b.Stage(c, registered)
	}
}

// stageOf returns the stage name of a test, "" if it runs on the catalog itself.
func stageOf(test *definition.Test) string {
	if len(test.Vars) == 0 {
		return ""
	}
	name, _ := json.Marshal(test.Vars) // decoded JSON encodes, in the order of the names
	return string(name)
}

// stage builds the catalog of a stage of c. compiled is its compile cache.
func (b *Builder) stage(c *Catalog, name string, vars map[string]json.RawMessage, compiled buildCache, registered []*Item) *Stage {
	s := *b
	s.options.Checks = Checks{Item: b.options.Checks.Item}
	s.config, s.cache = b.config.With(vars, "a test"), compiled
	found := s.newBuild(b.lock)
	found.accepted = b.accepted
	defined, problems := s.tree.Stage(name, found.config)
	found.report(problems)
	base := s.assemble(found, defined, registered)
	stage := &Stage{problems: found.problems.Sort()}
	if !stage.problems.HasErrors() {
		stage.catalog, _ = s.Overlay(base, c.offers)
	}
	b.stages[name] = s.cache
	return stage
}

// WithTest returns the catalog with one test, whose block is in no file. The block may use no variables,
// locals and secrets.
func (c *Catalog) WithTest(block []byte) (*Catalog, diag.List) {
	file, problems := hclfile.Parse(hclfile.Source{Path: "test.hcl", Bytes: block}, hclfile.ToolsKind)
	if problems.HasErrors() {
		return nil, problems
	}
	defined, problems := file.Decode(hclfile.Scope{})
	next := *c
	next.Tests, next.stages = defined.Tests, nil
	if len(next.Tests) != 1 && !problems.HasErrors() {
		problems = append(problems, diag.Diagnostic{Code: "syntax", Summary: "the text is not one test block", Range: diag.Range{File: "test.hcl"}})
	}
	return &next, problems
}

func errorsOf(l diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(l), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
}

// TestCatalog returns the catalog for a test of c, and the test with the values of its stage. The
// error says why there is none.
func (c *Catalog) TestCatalog(i int) (target *Catalog, test *definition.Test, err error) {
	test = &c.Tests[i]
	name := stageOf(test)
	if name == "" {
		return c, test, nil
	}
	s := c.stages[name]
	switch {
	case s == nil && len(c.stages) == maxStages:
		return nil, test, fmt.Errorf("the tests use more than %d different sets of variable values; use the same set in several tests", maxStages)
	case s == nil:
		return nil, test, fmt.Errorf("the files have changed since they were loaded; load them again")
	case s.problems.HasErrors():
		return nil, test, fmt.Errorf("with the vars of the test the files have errors:\n%w", errorsOf(s.problems))
	}
	return s.catalog, &s.catalog.Tests[i], nil
}
