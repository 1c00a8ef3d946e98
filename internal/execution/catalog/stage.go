package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// maxStages bounds how many different sets of values tests give to variables: for each
// of them everything is compiled once more.
const maxStages = 32

// Stage is what the files define with the values that a test gives to variables.
type Stage struct {
	// catalog is never served. It is not looked at when problems hold an error.
	catalog  *Catalog
	problems diag.List
}

// Stage makes the stages of the tests of a catalog, whose base is the one that was built
// last. A test with values of its own runs on the catalog that a server would have which was
// started with them, so that they hold wherever a variable is read. The disk of the machine
// is not looked at again: whether the places of the other values exist here does not matter
// to a test, which touches none of them.
func (b *Builder) Stage(c *Catalog, registered []*Item) {
	kept := b.stages
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
		c.stages[name] = b.stage(c, name, test.Vars, kept[name], registered)
	}
	b.tree.KeepStages(func(name string) bool { return c.stages[name] != nil })
}

// Staged has a catalog that serves have the stages of its tests. They are made of the files
// as they were read last: when these are no longer those of the catalog, its tests with
// values of their own have no stage.
func (b *Builder) EnsureStages(c *Catalog, registered []*Item) {
	if c.stages == nil && b.base != nil && b.base.Revision == c.base.Revision {
		b.Stage(c, registered)
	}
}

// stageOf names the stage of a test, "" when it runs on the catalog itself.
func stageOf(test *definition.Test) string {
	if len(test.Vars) == 0 {
		return ""
	}
	name, _ := json.Marshal(test.Vars) // what was decoded encodes, in the order of the names
	return string(name)
}

// stage builds the catalog of a stage of c, with what was compiled for it before.
func (b *Builder) stage(c *Catalog, name string, vars map[string]json.RawMessage, compiled buildCache, registered []*Item) *Stage {
	s := *b
	s.options.Checks = Checks{Item: b.options.Checks.Item}
	s.config, s.cache = b.config.With(vars, "a test"), compiled
	found := s.newBuild(b.lock)
	found.accepted = b.accepted
	defined, problems := s.tree.Stage(name, found.config)
	found.report(problems)
	base := s.assemble(found, defined, registered)
	made := &Stage{problems: found.problems.Sort()}
	if !made.problems.HasErrors() {
		made.catalog, _ = s.Overlay(base, c.offers)
	}
	b.stages[name] = s.cache
	return made
}

func errorsOf(l diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(l), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
}

// Staged returns the catalog that a test of c runs on, and the test as it reads there. An
// error says why there is none.
func (c *Catalog) TestCatalog(i int) (on *Catalog, test *definition.Test, err error) {
	test = &c.Tests[i]
	name := stageOf(test)
	if name == "" {
		return c, test, nil
	}
	s := c.stages[name]
	switch {
	case s == nil && len(c.stages) == maxStages:
		return nil, test, fmt.Errorf("the tests give variables more than %d different sets of values; let tests share them", maxStages)
	case s == nil:
		return nil, test, fmt.Errorf("the files have changed since they were loaded; load them again")
	case s.problems.HasErrors():
		return nil, test, fmt.Errorf("with the vars of the test the files have mistakes:\n%w", errorsOf(s.problems))
	}
	return s.catalog, &s.catalog.Tests[i], nil
}
