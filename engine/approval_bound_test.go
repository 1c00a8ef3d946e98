package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// wipeFile needs an approval with the given reason.
func wipeFile(reason string) string {
	return `
tool "wipe" {
  run = "return 1"
}
policy "asks" {
  requires_approval = "true"
  reason            = <<CEL
    ` + reason + `
  CEL
}
test "it is approved" {
  tool = "wipe"
  mock "elicit" "approval" {
    json = { action = "accept" }
  }
  expect { text = "1" }
}
`
}

const changing = "POLICY_DENIED: the call needs the approval of a user, and the reason of its policy changes with each evaluation: "

// After three rounds the call is denied.
func TestApproval_changingReason(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", wipeFile(`"Call " + call.id`))}})
	r := toolCall("wipe", `{}`)
	for range 3 {
		r.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), r)), "accept")
	}
	if got := outcomeText(s.Execute(t.Context(), r)); !strings.HasPrefix(got, changing+"Call ") {
		t.Errorf("got %s", got)
	}
}

func TestApproval_testWithoutMock(t *testing.T) {
	unanswered, _, _ := strings.Cut(wipeFile(`"gone"`), "test ")
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", unanswered+"test \"t\" {\n  tool = \"wipe\"\n  expect { text = \"1\" }\n}\n")}})
	results, err := s.RunTests(t.Context(), nil)
	want := "a host call had no mock; add\nmock \"elicit\" \"approval\" {\n  json = { action = \"accept\" } # or \"decline\"\n}"
	if err != nil || len(results) != 1 || !slices.Contains(results[0].Failures, want) {
		t.Errorf("got %+v, %v", results, err)
	}
}

func TestApproval_testChangingReason(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", wipeFile(`"Call " + call.id`))}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 1 || results[0].Passed() || !strings.Contains(results[0].Failures[0], "changes with each evaluation") {
		t.Errorf("got %+v, %v", results, err)
	}
}

// The server's store is not even opened.
func TestTestBlock_ownStateStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", wipeFile(`"Always"`))}, StatePath: path})
	if results, err := s.RunTests(t.Context(), nil); err != nil || len(results) != 1 || !results[0].Passed() {
		t.Errorf("got %+v, %v", results, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the server: %v", err)
	}
}

func TestTestBlock_cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	legs := 0
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", wipeFile(`"Always"`))}, Policies: []engine.Policy{func(engine.PolicyInput) engine.Decision {
		legs++
		cancel()
		return engine.Allow()
	}}})
	results, err := s.RunTests(ctx, nil)
	if err != nil || len(results) != 1 || results[0].Passed() || legs != 1 {
		t.Errorf("got %+v, %v after %d legs", results, err, legs)
	}
}

// The time of the user does not count.
func TestApproval_deadline(t *testing.T) {
	clock := &manualClock{}
	s := server(t, engine.Options{Now: clock.now, Files: engine.Files{Tools: files("w.hcl", strings.Replace(wipeFile(`"Always"`), `"return 1"`, `"return call.deadline"`+"\n  timeout = \"500ms\"", 1))}})
	r := toolCall("wipe", `{}`)
	r.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), r)), "accept")
	clock.advance(2 * time.Second)
	wantOutcome(t, s.Execute(t.Context(), r), strconv.FormatInt(clock.now().Add(500*time.Millisecond).UnixMilli(), 10))
}

// If several policies apply, the most restrictive one counts.
func TestApproval_disclosure(t *testing.T) {
	const second = "policy \"also\" {\n  tools = [\"refund\"]\n  requires_approval = \"true\"\n  reason = \"It is logged\"\n}\n"
	for disclose, want := range map[string][2]string{
		"reason":  {"POLICY_DENIED: the call needs the approval of a user, and the client does not support it: A refund of 70; It is logged", "POLICY_DENIED: the user did not approve the call"},
		"generic": {"POLICY_DENIED: denied by policy", "POLICY_DENIED: denied by policy"},
		"hide":    {`TOOL_NOT_FOUND: no tool named "refund"`, `TOOL_NOT_FOUND: no tool named "refund"`},
	} {
		s, paid, _ := refundServer(t, strings.Replace(refund, "requires_approval", "disclose = \""+disclose+"\"\n  requires_approval", 1)+second)
		mute := refundCall(`{"amount":70}`, nil)
		mute.Can = call.Capabilities{}
		wantOutcome(t, s.Execute(t.Context(), mute), want[0])
		ask := mustAsk(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
		for range 2 { // a repeated request gets the same result
			wantOutcome(t, s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(ask, "decline"))), want[1])
		}
		if paid.Load() != 0 {
			t.Error("it ran")
		}
	}
}

// The denial names its policy for the operator.
func TestApproval_repeatedDenial(t *testing.T) {
	var by []string
	s := server(t, engine.Options{Files: engine.Files{Tools: files("w.hcl", wipeFile(`"Always"`))}, Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
		if e.Err != nil {
			by = append(by, e.Err.DeniedBy)
		}
	}}})
	r := toolCall("wipe", `{}`)
	r.Resume = respondWith(mustAsk(t, s.Execute(t.Context(), r)), "decline")
	for range 2 {
		wantOutcome(t, s.Execute(t.Context(), r), "POLICY_DENIED: the user did not approve the call")
	}
	if diff := cmp.Diff([]string{"asks", "asks"}, by); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
