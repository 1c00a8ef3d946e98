package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestOnlyClientsThatSayThatTheyCanAreSentTools: the capability to sample is
// not the one to sample with tools.
func TestOnlyClientsThatSayThatTheyCanAreSentTools(t *testing.T) {
	for _, params := range []string{`{"messages":[],"maxTokens":1,"tools":[]}`, `{"messages":[],"maxTokens":1,"toolChoice":{"mode":"auto"}}`} {
		tool := mcptest.Asking()[0]
		tool.Run = func(context.Context, call.Request) call.Result {
			return call.Result{Ask: &call.Ask{Requests: []call.AskRequest{
				{Key: "k", Method: "sampling/createMessage", Params: json.RawMessage(params)},
			}}}
		}
		s, _ := newServer(t, mcp.Options{}, tool)
		for _, test := range []struct{ declared, want string }{
			{`{}`, `"requiredCapabilities":{"sampling":{"tools":{}}}`},
			{`{"tools":{}}`, `"inputRequests":{"k":{"method":"sampling/createMessage"`},
		} {
			text := strings.Replace(string(request(1, "tools/call", `"name":"ask"`)), `Capabilities":{}`, `Capabilities":{"sampling":`+test.declared+`}`, 1)
			if got := s.Exchange(t.Context(), []byte(text), exchange("tools/call", "ask")).Frame.String(); !strings.Contains(got, test.want) {
				t.Errorf("a modern client that declares %s gets %s", test.declared, got)
			}
		}
		peer := mcp.Peer{Principal: identity.Anonymous()}
		session := openSession(t.Context(), s, peer)
		var heard recorder
		reply := s.Exchange(t.Context(), legacyCall(2, "ask"), mcp.Exchange{Peer: peer, Session: session, Emit: heard.send})
		if !strings.Contains(reply.Frame.String(), `"required_capabilities":{"sampling":{"tools":{}}}`) || len(heard.all()) != 0 {
			t.Errorf("a legacy client gets %s after %q", reply.Frame, heard.all())
		}
	}
}

// TestWhoAsksAsksForSomething: a call cannot send its client away with nothing
// to do.
func TestWhoAsksAsksForSomething(t *testing.T) {
	tool := mcptest.Asking()[0]
	tool.Run = func(context.Context, call.Request) call.Result { return call.Result{Ask: &call.Ask{State: "s"}} }
	s, _ := newServer(t, mcp.Options{}, tool)
	got := s.Exchange(t.Context(), request(1, "tools/call", `"name":"ask"`), exchange("tools/call", "ask")).Frame.String()
	if !strings.Contains(got, `"isError":true`) || strings.Contains(got, "input_required") {
		t.Errorf("the answer is %s", got)
	}
}

// TestAllPagesOfAListHaveOneScope: what makes a list private stands on one page
// and counts on all.
func TestAllPagesOfAListHaveOneScope(t *testing.T) {
	hidden := mcptest.Tools()[4]
	hidden.Visible = func(identity.Caller) bool { return true }
	for scope, tools := range map[string][]mcptest.Tool{"public": mcptest.Tools()[:5], "private": append(mcptest.Tools()[:4], hidden)} {
		s, _ := newServer(t, mcp.Options{PageSize: 2}, tools...)
		cursor, pages := "", 0
		for ok := true; ok; pages++ {
			params := ""
			if cursor != "" {
				params = fmt.Sprintf(`"cursor":%q`, cursor)
			}
			got := s.Exchange(t.Context(), request(1, "tools/list", params), exchange("tools/list", "")).Frame.String()
			if !strings.Contains(got, `"ttlMs":0,"cacheScope":"`+scope+`"`) {
				t.Errorf("page %d of a %s list is %s", pages, scope, got)
			}
			_, cursor, ok = strings.Cut(got, `"nextCursor":"`)
			cursor, _, _ = strings.Cut(cursor, `"`)
		}
		if pages != 3 {
			t.Errorf("there are %d pages", pages)
		}
	}
}

// TestACompletionTellsNothingOfWhatIsHidden: what the caller may not see is
// completed as what there is not.
func TestACompletionTellsNothingOfWhatIsHidden(t *testing.T) {
	s, b := newServer(t, mcp.Options{}, mcptest.Tools()...)
	hidden := mcptest.Items()[6]
	hidden.Visible = func(c identity.Caller) bool { return c.Agent.AgentID == "insider" }
	b.PublishItems(hidden)
	complete := func(agent, prompt string) string {
		params := fmt.Sprintf(`"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"who","value":"a"}`, prompt)
		x := exchange("completion/complete", "")
		x.Peer.Headers.Set("X-Agent-Id", agent)
		x.Peer.Headers.Set("X-Request-Id", "r")
		return s.Exchange(t.Context(), request(1, "completion/complete", params), x).Frame.String()
	}
	if got := complete("insider", "greet"); !strings.Contains(got, `"values":["who:`) {
		t.Fatalf("who may see it gets %s", got)
	}
	if got, want := complete("other", "greet"), complete("other", "nope"); got != want || !strings.Contains(got, "-32602") {
		t.Errorf("a hidden prompt is answered with %s, one that is not there with %s", got, want)
	}
}
