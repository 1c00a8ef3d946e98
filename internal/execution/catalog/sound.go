package catalog

import (
	"maps"
	"sync"

	"github.com/mcpd/mcpd/diag"
)

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

// compile returns the rule of a key, which it compiles when there is none.
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

// count counts what was compiled.
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
