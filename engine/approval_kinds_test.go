package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// The question names the item, nothing is returned before, and an approval is valid for one item
// only.
func TestApproval_allKinds(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", "policy \"signed\" {\n  requires_approval = \"true\"\n  reason = \"It is kept\"\n}\n"),
			Tools:  files("all.hcl", itemsNamed("vault", "cell", "letter")),
		},
	})
	for _, kind := range []struct {
		request, other call.Request
		shown          string
	}{
		{call.Request{Kind: call.Resources, Name: "x://vault"}, call.Request{Kind: call.Resources, Name: "x://cell/7"}, "Resource: x://vault"},
		{call.Request{Kind: call.Resources, Name: "x://cell/7"}, call.Request{Kind: call.Resources, Name: "x://cell/8"}, "Resource: x://cell/7"},
		{
			call.Request{Kind: call.Prompts, Name: "letter", Arguments: json.RawMessage(`{"day":"monday"}`)},
			call.Request{Kind: call.Prompts, Name: "letter", Arguments: json.RawMessage(`{"day":"sunday"}`)}, `Prompt: letter`,
		},
	} {
		ready := func(r call.Request, resume *call.Resume) call.Request {
			r.Caller, r.Can, r.Resume = anonymous(), call.Capabilities{Form: true}, resume
			return r
		}
		name := kind.request.Name
		ask := mustAsk(t, s.Execute(t.Context(), ready(kind.request, nil)))
		if shown := string(ask.Requests[0].Params); !strings.Contains(shown, "It is kept") || !strings.Contains(shown, kind.shown) {
			t.Errorf("%s: the user is shown %s", name, shown)
		}
		wantOutcome(t, s.Execute(t.Context(), ready(kind.request, respondWith(ask, "decline"))), "POLICY_DENIED: the user did not approve the call")
		ask = mustAsk(t, s.Execute(t.Context(), ready(kind.request, nil)))
		if got := s.Execute(t.Context(), ready(kind.other, respondWith(ask, "accept"))); got.Err == nil || got.Err.Code != call.InvalidInput {
			t.Errorf("the approval of %s is valid for %s %s: %s", name, kind.other.Name, kind.other.Arguments, outcomeText(got))
		}
		if got := s.Execute(t.Context(), ready(kind.request, respondWith(ask, "accept"))); got.Err != nil || got.Ask != nil || !strings.Contains(string(got.Reply), "done") {
			t.Errorf("%s, after the approval: %s, %s", name, outcomeText(got), got.Reply)
		}
	}
}
