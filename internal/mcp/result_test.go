package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// TestWhatTheMessageTellsIsNotToldAgain: a model reads each violation once.
func TestWhatTheMessageTellsIsNotToldAgain(t *testing.T) {
	details := []byte(`[{"path":"/name","message":"is required"},{"path":"","message":"must be an object"}]`)
	for message, want := range map[string]string{
		"wrong":                    "wrong\n/name: is required\n(arguments): must be an object",
		"wrong: /name is required": "wrong: /name is required\n(arguments): must be an object",
		"wrong: /name is required; must be an object": "wrong: /name is required; must be an object",
	} {
		if got := errorText(&CallError{Code: InvalidInput, Message: message, Details: details}); got != want {
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
		if got := string(errorData(identity.Caller{}, &CallError{RetryAfter: wait})); !strings.HasSuffix(got, want) {
			t.Errorf("after %s: %s, want %s", wait, got, want)
		}
	}
}
