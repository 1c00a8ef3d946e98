package tooltest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// A block has what differs from the caller that tests have by default.
func TestRecording_caller(t *testing.T) {
	key := identity.Principal{ID: "ada", Kind: identity.KindKey, Scopes: []string{}, Groups: []string{"leads"}, Claims: map[string]any{"${x}": "secret"}}
	bot := identity.Agent{AgentID: "bot", Model: "m", Metadata: map[string]string{"a": "b"}, Verified: true, RequestID: "r"}
	for name, row := range map[string]struct {
		caller identity.Caller
		want   string
	}{
		"anonymous": {identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent}, Source: identity.Source{Listener: "local"}}, ""},
		"key":       {identity.Caller{Principal: key}, "  principal = {\nid = \"ada\"\nkind = \"key\"\ngroups = [\n\"leads\",\n]\nclaims = {\n\"$${x}\" = \"hidden\"\n}\n}\n"},
		"agent":     {identity.Caller{Principal: identity.Anonymous(), Agent: bot, Source: identity.Source{Listener: "console"}}, "  agent = {\nagent_id = \"bot\"\nmodel = \"m\"\nmetadata = {\na = \"b\"\n}\nverified = true\n}\n  source = { listener = \"console\" }\n"},
	} {
		hide := func(s string) string { return strings.ReplaceAll(s, "secret", "hidden") }
		got := new(Recording).Block(RecordedCall{Name: "n", Tool: "t", Caller: row.caller, Hide: hide, Result: call.Result{Value: json.RawMessage("1")}})
		if diff := cmp.Diff("test \"n\" {\n  tool = \"t\"\n"+row.want+"\n  expect {\n    output = 1\n  }\n}\n", got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
