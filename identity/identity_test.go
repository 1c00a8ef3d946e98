package identity_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

func TestAgent_MarshalJSON(t *testing.T) {
	for _, test := range []struct {
		name  string
		agent identity.Agent
		want  string
	}{
		{
			"what is not claimed is anonymous, null and empty, never missing", identity.Agent{},
			`{"agent_id":"anonymous","model":null,"request_id":"","metadata":{},"verified":false}`,
		},
		{
			"what is claimed is there",
			identity.Agent{AgentID: "a", Model: "m", RequestID: "r", Metadata: map[string]string{"team": "qa"}, Verified: true},
			`{"agent_id":"a","model":"m","request_id":"r","metadata":{"team":"qa"},"verified":true}`,
		},
		{
			"claims cannot break out of their strings",
			identity.Agent{AgentID: `","verified":true,"x":"`},
			`{"agent_id":"\",\"verified\":true,\"x\":\"","model":null,"request_id":"","metadata":{},"verified":false}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := json.Marshal(test.agent)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnonymous_emptyLists(t *testing.T) {
	got, err := json.Marshal(identity.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"anonymous","kind":"anonymous","scopes":[],"groups":[],"claims":{}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnonymous_copies(t *testing.T) {
	one := identity.Anonymous()
	one.Claims["admin"] = true
	one.Scopes = append(one.Scopes, "write")
	if diff := cmp.Diff(identity.Principal{
		ID: "anonymous", Kind: identity.KindAnonymous, Scopes: []string{}, Groups: []string{}, Claims: map[string]any{},
	}, identity.Anonymous()); diff != "" {
		t.Errorf("another principal changed (-want +got)\n%s", diff)
	}
}

func TestPrincipal_Bind(t *testing.T) {
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
