package mcp

import "testing"

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
