package identity_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

func TestAnAgentEncodesAsTheRFCsAgentContext(t *testing.T) {
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

func TestTheAnonymousPrincipalHasEmptyListsAndNoRights(t *testing.T) {
	got, err := json.Marshal(identity.Anonymous())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"anonymous","kind":"anonymous","scopes":[],"groups":[],"claims":{}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnonymousPrincipalsShareNothing(t *testing.T) {
	one := identity.Anonymous()
	one.Claims["admin"] = true
	one.Scopes = append(one.Scopes, "write")
	if diff := cmp.Diff(identity.Principal{
		ID: "anonymous", Kind: identity.KindAnonymous, Scopes: []string{}, Groups: []string{}, Claims: map[string]any{},
	}, identity.Anonymous()); diff != "" {
		t.Errorf("another principal changed (-want +got)\n%s", diff)
	}
}
