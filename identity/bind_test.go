package identity_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

func TestOnlyABoundCredentialVerifiesAnAgent(t *testing.T) {
	for _, row := range []struct {
		name, bound string
		claimed     identity.Agent
		want        identity.Agent
		forbidden   bool
	}{
		{"bound, and the same claimed", "a", identity.Agent{AgentID: "a", Model: "m"}, identity.Agent{AgentID: "a", Model: "m", Verified: true}, false},
		{"bound, and none claimed", "a", identity.Agent{Model: "m"}, identity.Agent{AgentID: "a", Model: "m", Verified: true}, false},
		{"bound, and anonymous", "a", identity.Agent{AgentID: "anonymous"}, identity.Agent{AgentID: "a", Verified: true}, false},
		{"bound, and another claimed", "a", identity.Agent{AgentID: "b"}, identity.Agent{}, true},
		{"bound, and another case claimed", "a", identity.Agent{AgentID: "A", Verified: true}, identity.Agent{}, true},
		{"not bound", "", identity.Agent{AgentID: "b"}, identity.Agent{AgentID: "b"}, false},
		{"not bound, and claimed to be verified", "", identity.Agent{AgentID: "b", Verified: true}, identity.Agent{AgentID: "b"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			bound := identity.Principal{Agent: row.bound}
			got, err := bound.Bind(row.claimed)
			var contradiction *identity.ContradictionError
			if errors.As(err, &contradiction) != row.forbidden {
				t.Fatalf("the error is %v", err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
