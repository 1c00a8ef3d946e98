package catalog

import (
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/policylang"
)

// soundPolicies are the compiled policies of one build, each of which serves
// all items with the same inputs. It is safe for concurrent use. What has
// mistakes or warnings is not kept: these speak of one item, and are told again
// by the next build.
type soundPolicies struct {
	most int // fixed at creation

	mu    sync.Mutex
	byKey map[policyKey]*soundPolicy
	// distinct are all that were compiled. One that does not read args is the
	// same for all items.
	distinct map[*policylang.Policy]struct{}
	// mistaken counts what could not be compiled.
	mistaken int
}

// maxPolicies bounds the compiled policies of one build, and with them its time
// and memory: files that are small define two thousand tools and as many
// policies, each of which reads the args of each.
const maxPolicies = 50_000

type soundPolicy struct {
	once   sync.Once
	policy *policylang.Policy
}

func newSoundPolicies(most int) soundPolicies {
	return soundPolicies{most: most, byKey: map[policyKey]*soundPolicy{}, distinct: map[*policylang.Policy]struct{}{}}
}

// full reports whether more was compiled than the bound allows.
func (s *soundPolicies) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.distinct)+s.mistaken > s.most
}

// compile returns the policy of a key, which it compiles when there is none.
func (s *soundPolicies) compile(key policyKey, compile func() (*policylang.Policy, diag.List)) (policy *policylang.Policy, problems diag.List) {
	known := s.at(key)
	first := false
	known.once.Do(func() {
		first = true
		if policy, problems = s.count(compile()); len(problems) == 0 {
			known.policy = policy
		}
	})
	switch {
	case first:
		return policy, problems
	case known.policy != nil:
		return known.policy, nil
	default:
		return s.count(compile())
	}
}

// count counts what was compiled.
func (s *soundPolicies) count(policy *policylang.Policy, problems diag.List) (*policylang.Policy, diag.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if policy == nil {
		s.mistaken++
	} else {
		s.distinct[policy] = struct{}{}
	}
	return policy, problems
}

func (s *soundPolicies) at(key policyKey) *soundPolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byKey[key]
	if known == nil {
		known = &soundPolicy{}
		s.byKey[key] = known
	}
	return known
}

// all returns what is kept, once nothing is compiled any more.
func (s *soundPolicies) all() map[policyKey]*policylang.Policy {
	all := make(map[policyKey]*policylang.Policy, len(s.byKey))
	for key, known := range s.byKey {
		if known.policy != nil {
			all[key] = known.policy
		}
	}
	return all
}
