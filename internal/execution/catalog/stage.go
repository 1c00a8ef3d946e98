package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

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
	b.stages = map[string]cache{}
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
func (b *Builder) Staged(c *Catalog, registered []*Item) {
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
func (b *Builder) stage(c *Catalog, name string, vars map[string]json.RawMessage, compiled cache, registered []*Item) *Stage {
	s := *b
	s.options.Checks = Checks{Item: b.options.Checks.Item}
	s.config, s.cache = b.config.With(vars, "a test"), compiled
	found := s.begin(b.lock)
	found.accepted = b.accepted
	defined, problems := s.tree.Stage(name, found.config)
	found.report(problems)
	base := s.join(found, defined, registered)
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
func (c *Catalog) Staged(i int) (on *Catalog, test *definition.Test, err error) {
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

// soundRules are the compiled policies of one build, or the keys of its limits,
// each of which serves all items with the same inputs. It is safe for concurrent
// use. What has mistakes or warnings is not kept: these speak of one item, and
// are told again by the next build.
type soundRules[T any] struct {
	most int // fixed at creation

	mu    sync.Mutex
	byKey map[ruleKey]*soundRule[T]
	// distinct are all that were compiled. One that does not read args is the
	// same for all items.
	distinct map[*T]struct{}
	// mistaken counts what could not be compiled.
	mistaken int
}

// maxPolicies bounds the compiled policies of one build, and the compiled keys of
// limits, and with them its time and memory: files that are small define two
// thousand tools and as many policies, each of which reads the args of each.
const maxPolicies = 50_000

type soundRule[T any] struct {
	once sync.Once
	rule *T
}

func newSoundRules[T any](most int) *soundRules[T] {
	return &soundRules[T]{most: most, byKey: map[ruleKey]*soundRule[T]{}, distinct: map[*T]struct{}{}}
}

// fork returns rules that share what is compiled so far.
func (s *soundRules[T]) fork() *soundRules[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &soundRules[T]{most: s.most, byKey: maps.Clone(s.byKey), distinct: maps.Clone(s.distinct), mistaken: s.mistaken}
}

// room is how many more may be compiled; below zero more were than the bound allows.
func (s *soundRules[T]) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most - len(s.distinct) - s.mistaken
}

func (s *soundRules[T]) compile(key ruleKey, compile func() (*T, diag.List)) (rule *T, problems diag.List) {
	known := s.at(key)
	first := false
	known.once.Do(func() {
		first = true
		if rule, problems = s.count(compile()); len(problems) == 0 {
			known.rule = rule
		}
	})
	switch {
	case first:
		return rule, problems
	case known.rule != nil:
		return known.rule, nil
	default:
		return s.count(compile())
	}
}

func (s *soundRules[T]) count(rule *T, problems diag.List) (*T, diag.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rule == nil {
		s.mistaken++
	} else {
		s.distinct[rule] = struct{}{}
	}
	return rule, problems
}

func (s *soundRules[T]) at(key ruleKey) *soundRule[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byKey[key]
	if known == nil {
		known = &soundRule[T]{}
		s.byKey[key] = known
	}
	return known
}

// all returns what is kept, once nothing is compiled any more.
func (s *soundRules[T]) all() map[ruleKey]*T {
	all := make(map[ruleKey]*T, len(s.byKey))
	for key, known := range s.byKey {
		if known.rule != nil {
			all[key] = known.rule
		}
	}
	return all
}
