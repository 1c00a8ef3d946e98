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
	mu    sync.Mutex
	byKey map[policyKey]*soundPolicy
}

type soundPolicy struct {
	once   sync.Once
	policy *policylang.Policy
}

// compile returns the policy of a key, which it compiles when there is none.
func (s *soundPolicies) compile(key policyKey, compile func() (*policylang.Policy, diag.List)) (policy *policylang.Policy, problems diag.List) {
	known := s.at(key)
	first := false
	known.once.Do(func() {
		first = true
		if policy, problems = compile(); len(problems) == 0 {
			known.policy = policy
		}
	})
	switch {
	case first:
		return policy, problems
	case known.policy != nil:
		return known.policy, nil
	default:
		return compile()
	}
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
