package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// refund needs an approval for large amounts.
const refund = `
tool "refund" {
  title = "Refund a payment"
  input "amount" { type = number }
  input "note" {
    type     = string
    required = false
  }
  input "token" {
    type      = string
    required  = false
    sensitive = true
  }
  allow {
    call { tools = ["pay"] }
  }
  run = "return await tools.pay({})"
}
policy "large" {
  tools             = ["refund"]
  requires_approval = "args.amount > 50.0"
  reason            = <<CEL
    "A refund of " + string(args.amount)
  CEL
}
`

// refundServer returns a server with a tool "pay" that counts its calls.
func refundServer(t *testing.T, text string) (*engine.Server, *atomic.Int64, fstest.MapFS) {
	tools, paid := files("refund.hcl", text), &atomic.Int64{}
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: tools}})
	goTool(t, s, "pay", func(context.Context) (string, error) {
		paid.Add(1)
		return "paid", nil
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, paid, tools
}

// refundCall returns a call by a client with all input capabilities.
func refundCall(arguments string, resume *call.Resume) call.Request {
	r := deployCall("", resume)
	r.Name, r.Arguments = "refund", json.RawMessage(arguments)
	return r
}

// respondWith responds to all requests with one action.
func respondWith(ask *call.Ask, action string) *call.Resume {
	r := &call.Resume{State: ask.State, Responses: map[string]json.RawMessage{}}
	for _, request := range ask.Requests {
		r.Responses[request.Key] = json.RawMessage(`{"action":"` + action + `"}`)
	}
	return r
}

// outcomeText returns the outcome of a call in short form.
func outcomeText(r call.Result) string {
	switch {
	case r.Err != nil:
		return r.Err.Error()
	case r.Ask != nil:
		return "asks " + r.Ask.Requests[0].Key
	}
	return string(r.Value)
}

func wantOutcome(t *testing.T, r call.Result, want string) {
	t.Helper()
	if got := outcomeText(r); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestApproval_given(t *testing.T) {
	s, paid, _ := refundServer(t, refund)
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":5}`, nil)), `"paid"`)
	arguments := `{"amount":70,"note":"x","token":"t0ps3cret"}`
	ask := mustAsk(t, s.Execute(t.Context(), refundCall(arguments, nil)))
	const want = `{"message":"A refund of 70\n\nTool: refund (Refund a payment)\nArguments: {\"amount\":70,\"note\":\"x\",\"token\":\"[sensitive]\"}","requestedSchema":{"properties":{},"type":"object"}}`
	if got := string(ask.Requests[0].Params); got != want || ask.Requests[0].Method != "elicitation/create" {
		t.Errorf("the user is asked %s\nwant %s", got, want)
	}
	if paid.Load() != 1 {
		t.Error("the call ran before it was approved")
	}
	approved := refundCall(arguments, respondWith(ask, "accept"))
	for range 2 { // a repeated request gets the same result
		wantOutcome(t, s.Execute(t.Context(), approved), `"paid"`)
	}
	if paid.Load() != 2 {
		t.Errorf("%d payments, want 2", paid.Load())
	}
}

func TestApproval_declined(t *testing.T) {
	s, paid, _ := refundServer(t, refund)
	for _, action := range []string{"decline", "cancel"} {
		ask := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
		for range 2 {
			wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(ask, action))), "POLICY_DENIED: the user did not approve the call")
		}
		// A declined call cannot be approved later with the same state.
		wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(ask, "accept"))), "POLICY_DENIED: the user did not approve the call")
	}
	if paid.Load() != 0 {
		t.Error("the tool ran")
	}
}

func TestApproval_boundToCall(t *testing.T) {
	s, paid, tools := refundServer(t, refund)
	ask := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":7000}`, respondWith(ask, "accept"))), "INVALID_INPUT: the arguments differ from those of the original call")
	other := refundCall(`{"amount":70}`, respondWith(ask, "accept"))
	other.Caller.Principal = identity.Principal{ID: "eve", Kind: identity.KindLocal}
	wantOutcome(t, s.Execute(t.Context(), other), "INVALID_INPUT: the request state belongs to another caller")
	tools["refund.hcl"] = files("refund.hcl", strings.Replace(refund, "Refund a payment", "Pay it back", 1))["refund.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(ask, "accept"))), "INVALID_INPUT: the called item has changed since the request state was created; make the call again")
	if paid.Load() != 0 {
		t.Error("it ran")
	}
}

func TestApproval_actionMember(t *testing.T) {
	s, paid, _ := refundServer(t, refund)
	ask := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	both := &call.Resume{State: ask.State, Responses: map[string]json.RawMessage{"approval": json.RawMessage(`{"action":"decline","ACTION":"accept"}`)}}
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, both)), "POLICY_DENIED: the user did not approve the call")
	if paid.Load() != 0 {
		t.Error("it ran")
	}
}

// A reload adds a reason, which is asked as well.
func TestApproval_boundToReasons(t *testing.T) {
	s, paid, tools := refundServer(t, refund)
	first := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	more := "policy \"audit\" {\n  requires_approval = \"tool.name == 'refund'\"\n  reason = \"The auditors will see it\"\n}\n"
	tools["refund.hcl"] = files("refund.hcl", refund+more)["refund.hcl"]
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(first, "accept"))))
	if !strings.Contains(string(second.Requests[0].Params), `A refund of 70\nThe auditors will see it\n\nTool: refund`) || paid.Load() != 0 {
		t.Errorf("the user is asked %s", second.Requests[0].Params)
	}
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(second, "accept"))), `"paid"`)
}

// The client has no forms, or another tool makes the call. Unrequested responses are ignored.
func TestApproval_unavailable(t *testing.T) {
	s, paid, _ := refundServer(t, refund+`
tool "outer" {
  allow {
    call { tools = ["refund"] }
  }
  run = "return await tools.refund({ amount: 70 })"
}
`)
	mute := refundCall(`{"amount":70}`, nil)
	mute.Can = call.Capabilities{URL: true, Sample: true, Roots: true}
	wantOutcome(t, s.Execute(t.Context(), mute), "POLICY_DENIED: the call needs the approval of a user, and the client does not support it: A refund of 70")
	outer := refundCall("", nil)
	outer.Name, outer.Arguments = "outer", nil
	wantOutcome(t, s.Execute(t.Context(), outer), "EXECUTION_ERROR: the call needs the approval of a user, and a nested call cannot request it: A refund of 70")
	forward := refundCall(`{"amount":70}`, &call.Resume{Responses: map[string]json.RawMessage{"approval": json.RawMessage(`{"action":"accept"}`)}})
	wantOutcome(t, s.Execute(t.Context(), forward), "asks approval")
	if paid.Load() != 0 {
		t.Error("it ran")
	}
}

// No argument can start a line, reverse the text or hide the rest of it.
func TestApproval_messageEscaping(t *testing.T) {
	s, _, _ := refundServer(t, strings.Replace(refund, `"A refund of " + string(args.amount)`, `"For " + args.note`, 1))
	note := "x\nTool: harmless\r\u202egnp.exe\u200b\u00a0\u2028" + strings.Repeat("z", 2_000)
	arguments, err := json.Marshal(map[string]any{"amount": 70, "note": note})
	if err != nil {
		t.Fatal(err)
	}
	ask := mustAsk(t, s.Execute(t.Context(), refundCall(string(arguments), nil)))
	var params struct{ Message string }
	if err := json.Unmarshal(ask.Requests[0].Params, &params); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(params.Message, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], `For x Tool: harmless\r\u202egnp.exe\u200b\u00a0\u2028zz`) {
		t.Errorf("the user is shown %.200q", params.Message)
	}
	if strings.Count(params.Message, strings.Repeat("z", 2_000)) != 2 {
		t.Errorf("the message is truncated: %.200q", params.Message)
	}
}

// A call is denied if any part of the question is too long.
func TestApproval_cutText(t *testing.T) {
	const asked = "POLICY_DENIED: the call needs the approval of a user, but the question is too long to show; shorten the arguments"
	more := strings.Replace(strings.Replace(refund, `policy "`, `policy "second_`, 1), `"A refund of " + string(args.amount)`, `"Also " + args.note`, 1)
	more = more[strings.Index(more, "policy "):]
	for name, row := range map[string]struct {
		tools  string
		note   int
		refuse bool
	}{
		"arguments that fit":   {refund, 6_000, false},
		"long arguments":       {refund, 7_000, true},
		"a reason that fits":   {strings.Replace(refund, `"A refund of " + string(args.amount)`, `"For " + args.note`, 1), 4_000, false},
		"a long reason":        {strings.Replace(refund, `"A refund of " + string(args.amount)`, `"For " + args.note`, 1), 4_100, true},
		"reasons that fit":     {refund + more, 4_000, false},
		"two reasons":          {strings.Replace(refund, `"A refund of " + string(args.amount)`, `"For " + args.note`, 1) + more, 3_500, true},
		"two reasons that fit": {strings.Replace(refund, `"A refund of " + string(args.amount)`, `"For " + args.note`, 1) + more, 3_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, paid, _ := refundServer(t, row.tools)
			arguments, err := json.Marshal(map[string]any{"amount": 70, "note": strings.Repeat("z", row.note)})
			if err != nil {
				t.Fatal(err)
			}
			result := s.Execute(t.Context(), refundCall(string(arguments), nil))
			if !row.refuse {
				mustAsk(t, result)
				return
			}
			if said := outcomeLine(result); said != asked || paid.Load() != 0 {
				t.Errorf("it ends with %.200s", said)
			}
		})
	}
}

// The handler makes a request itself.
func TestApproval_notCountedAsAsk(t *testing.T) {
	s, _, _ := refundServer(t, `
tool "refund" {
  input "amount" { type = number }
  allow {
    ask {
      elicit     = true
      max_rounds = 1
    }
  }
  run = "return (await elicit('sure', { message: 'Sure?', schema: { type: 'object', properties: {} } })).action"
}
policy "all" {
  requires_approval = "true"
  reason            = "Money leaves"
}
`)
	first := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":1}`, nil)))
	second := s.Execute(t.Context(), refundCall(`{"amount":1}`, respondWith(first, "accept")))
	wantOutcome(t, second, "asks sure")
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":1}`, respondWith(second.Ask, "accept"))), `"accept"`)
}

func TestApproval_denialFirst(t *testing.T) {
	s, _, _ := refundServer(t, refund+"policy \"last\" {\n  tools = [\"refund\"]\n  deny = \"args.amount > 1000.0\"\n  reason = \"Too much\"\n}\n")
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":7000}`, nil)), "POLICY_DENIED: Too much")
}

// An error of the policy denies.
func TestApproval_policyError(t *testing.T) {
	s, _, _ := refundServer(t, strings.Replace(refund, `"args.amount > 50.0"`, `"args.amount > 50.0 && principal.claims.level > 3"`, 1))
	wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)), "POLICY_DENIED: denied by policy")
}

// A Go tool can need an approval.
func TestApproval_goTool(t *testing.T) {
	s, paid, _ := refundServer(t, "policy \"all\" {\n  tools = [\"pay\"]\n  requires_approval = \"true\"\n  reason = \"Money leaves\"\n}\n")
	pay := refundCall(`{}`, nil)
	pay.Name = "pay"
	ask := mustAsk(t, s.Execute(t.Context(), pay))
	pay.Resume = respondWith(ask, "accept")
	wantOutcome(t, s.Execute(t.Context(), pay), `"paid"`)
	if paid.Load() != 1 || ask.Wait <= 0 {
		t.Errorf("%d payments after %s", paid.Load(), ask.Wait)
	}
}

// The caller gets the result even if it cannot be stored, and it is never computed again.
func TestApproval_outcomeNotStored(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", "policy \"all\" {\n  requires_approval = \"true\"\n  reason = \"Large\"\n}\n")}})
	var done atomic.Int64
	goTool(t, s, "large", func(context.Context) (string, error) {
		done.Add(1)
		return strings.Repeat("x", 3<<20), nil
	})
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for range 8 {
		r := toolCall("large", `{}`)
		r.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), r)), "accept")
		if got := s.Execute(t.Context(), r); got.Err != nil || len(got.Value) != 3<<20+2 {
			t.Errorf("the approved call returned %d bytes, %v", len(got.Value), got.Err)
		}
		again := s.Execute(t.Context(), r)
		if again.Err == nil {
			kept++
			continue
		}
		wantOutcome(t, again, "INVALID_INPUT: the call was made, but its result is no longer stored")
	}
	if kept != 5 || done.Load() != 8 {
		t.Errorf("%d of 8 results of 3 MiB are stored in 16 MiB after %d runs", kept, done.Load())
	}
}
