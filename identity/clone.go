package identity

import (
	"maps"
	"math/big"
	"slices"
)

// Clone returns a caller that shares nothing with c that could be changed.
func (c Caller) Clone() Caller {
	c.Agent = c.Agent.Clone()
	c.Principal.Scopes, c.Principal.Groups = slices.Clone(c.Principal.Scopes), slices.Clone(c.Principal.Groups)
	if c.Principal.Claims != nil {
		c.Principal.Claims = CloneValue(c.Principal.Claims).(map[string]any)
	}
	return c
}

// Clone returns an agent that shares nothing with a that could be changed.
func (a Agent) Clone() Agent {
	a.Metadata = maps.Clone(a.Metadata)
	return a
}

// CloneValue returns a copy of decoded JSON that shares no map and no list with
// it, for those who may change what they are given.
func CloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		cloned := make(map[string]any, len(value))
		for key, member := range value {
			cloned[key] = CloneValue(member)
		}
		return cloned
	case []any:
		cloned := make([]any, len(value))
		for i, item := range value {
			cloned[i] = CloneValue(item)
		}
		return cloned
	case *big.Int:
		return new(big.Int).Set(value)
	default:
		return value
	}
}
