package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestRemovedIn_visibleTools(t *testing.T) {
	const tool = "tool %q {\n  run = \"return 1;\"\n}\n"
	const policy = "policy \"staff\" {\n  tools  = [\"ledger\"]\n  deny   = \"principal.kind == 'anonymous'\"\n  reason = \"staff only\"\n  disclose = \"hide\"\n}\n"
	tools := files("greet.hcl", fmt.Sprintf(tool, "greet"), "ledger.hcl", fmt.Sprintf(tool, "ledger")+policy, "other.hcl", fmt.Sprintf(tool, "other"))
	s := server(t, engine.Options{Files: engine.Files{Tools: tools}})
	execute := func(tool string, kind identity.Kind) *call.Error {
		return s.Execute(t.Context(), call.Request{Name: tool, Caller: identity.Caller{Principal: identity.Principal{Kind: kind}}}).Err
	}
	reload := func() string {
		t.Helper()
		report, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return report.Revision
	}
	delete(tools, "greet.hcl")
	delete(tools, "ledger.hcl")
	removed := reload()
	tools["more.hcl"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(tool, "more")), Mode: 0o644}
	reload()
	for _, c := range []struct {
		tool string
		kind identity.Kind
		want string
	}{
		{"greet", "anonymous", removed},
		{"ledger", "local", removed},
		{"ledger", "anonymous", ""},
		{"never", "local", ""},
	} {
		err := execute(c.tool, c.kind)
		if err == nil || err.Code != call.ToolNotFound || err.RemovedIn != c.want || strings.Contains(err.Message, "removed") != (c.want != "") {
			t.Errorf("%s, called by a %s principal: %+v", c.tool, c.kind, err)
		}
	}
	tools["greet.hcl"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(tool, "greet")), Mode: 0o644}
	reload()
	if err := execute("greet", "anonymous"); err != nil {
		t.Errorf("a restored tool: %v", err)
	}
}
