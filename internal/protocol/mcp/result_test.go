package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// TestWhatTheMessageTellsIsNotToldAgain: a model reads each violation once.
func TestWhatTheMessageTellsIsNotToldAgain(t *testing.T) {
	violations := []call.Violation{{Path: "/name", Message: "is required"}, {Message: "must be an object"}}
	for message, want := range map[string]string{
		"wrong":                    "wrong\n/name: is required\n(arguments): must be an object",
		"wrong: /name is required": "wrong: /name is required\n(arguments): must be an object",
		"wrong: /name is required; must be an object": "wrong: /name is required; must be an object",
	} {
		if got := errorText(&call.Error{Code: call.InvalidInput, Message: message, Violations: violations}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWhoWaitsAsLongAsToldIsNotEarly: a limit frees up by the nanosecond.
func TestWhoWaitsAsLongAsToldIsNotEarly(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Nanosecond:               `"retry_after_ms":1}`,
		time.Second:                   `"retry_after_ms":1000}`,
		time.Second + time.Nanosecond: `"retry_after_ms":1001}`,
	} {
		if got := string(errorData(identity.Caller{}, &call.Error{RetryAfter: wait})); !strings.HasSuffix(got, want) {
			t.Errorf("after %s: %s, want %s", wait, got, want)
		}
	}
}

// TestWhoAsksForATaskIsNotToldToAskAgain as the call of the task could be.
func TestWhoAsksForATaskIsNotToldToAskAgain(t *testing.T) {
	failed := &call.Error{Code: call.ExecutionError, Message: "overloaded", RetryAfter: time.Second}
	c := &request{era: modern}
	_, members := (&Task{Response: &call.Result{Err: failed}}).outcome(c, identity.Caller{})
	if c.retryAfter != 0 || !strings.Contains(string(members), `"retry_after_ms":1000`) {
		t.Errorf("after %s, with %s", c.retryAfter, members)
	}
	if _, _ = c.failed(&call.Request{Kind: call.Tools}, failed, ""); c.retryAfter != time.Second {
		t.Errorf("who made the call is told %s", c.retryAfter)
	}
}

// TestABatchIsNotToBeTriedAgain for one of its requests: others may have succeeded.
func TestABatchIsNotToBeTriedAgain(t *testing.T) {
	b := &batch{isBatch: true, replies: []Reply{{Frame: Frame{head: []byte("{}")}, RetryAfter: time.Second}}}
	if joined := b.join(); joined.RetryAfter != 0 || joined.Frame.String() != "[{}]" {
		t.Errorf("got %s, %s", joined.Frame, joined.RetryAfter)
	}
}
