package policylang_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/policylang"
)

func TestAccess_permits(t *testing.T) {
	env, err := policylang.NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lead := identity.Principal{ID: "ada", Kind: identity.KindKey, Groups: []string{"leads"}}
	guest := identity.Principal{ID: "bob", Kind: identity.KindKey}
	tests := []struct {
		name, text  string
		other       bool
		lead, guest bool
		err         string
	}{
		{name: "a group", text: "'leads' in principal.groups", lead: true},
		{name: "an expression that fails", text: "principal.claims.level > 2", err: "level"},
		{name: "the other principal", text: "other.id == 'bob' && principal.id != other.id", other: true, lead: true},
		{name: "time", text: "now.getFullYear() > 2000", lead: true, guest: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			access, problems := env.CompileAccess(policylang.AccessSource{Argument: "allow", Block: "block", Text: diag.WholeFile("mcpd.hcl", tt.text), Other: tt.other})
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			for _, want := range []struct {
				caller identity.Principal
				may    bool
			}{{lead, tt.lead}, {guest, tt.guest}} {
				may, err := access.Permits(t.Context(), want.caller, guest, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
				if may != want.may {
					t.Errorf("Permits(%s) = %v, want %v", want.caller.ID, may, want.may)
				}
				if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Permits(%s): error %v, want %q", want.caller.ID, err, tt.err)
				}
			}
		})
	}
}

func TestAccess_readsNothingOfACall(t *testing.T) {
	env, err := policylang.NewEnv(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"args.x == 1", "tool.name == 'a'", "agent.agent_id == 'a'", "call.depth == 0", "source.ip == ''", "other.id == 'a'", "result == 1", "principal", "principal.nmae == 'a'", "principal.id"} {
		if access, problems := env.CompileAccess(policylang.AccessSource{Argument: "allow", Block: "block", Text: diag.WholeFile("mcpd.hcl", text)}); access != nil || !problems.HasErrors() {
			t.Errorf("%s compiles: %v", text, problems)
		}
	}
}
