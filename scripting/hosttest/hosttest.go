// Package hosttest tests that an implementation of [scripting.Host] fulfills the contract of
// executors, like testing/slogtest.
//
// Describe the host as a [Suite], with one [Operation] for each operation of the host, and call
// [Suite.Run] from a test. Run the test with the race detector: operations are called from several
// goroutines at once.
package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// Suite describes a host.
type Suite struct {
	// New returns a fresh host.
	New func(t *testing.T) scripting.Host
	// Operations are the operations of the host.
	Operations []Operation
	// Secrets must not appear in any response or error.
	Secrets []string
}

// Operation is one operation of a host.
type Operation struct {
	// Op is the name of the operation, such as "http.request".
	Op string
	// Payload is JSON that the host accepts. Empty means that no payload gets an immediate
	// response.
	Payload string
	// OneWay is set if the response is ignored, so that it may be anything.
	OneWay bool
	// Suspended is a payload without an immediate response: the host soon returns
	// [scripting.ErrSuspended]. Only the operation ask may have one. Empty means that there is
	// none.
	Suspended string
	// MissingCapability is a payload that requires a capability that no client of the call has: the host
	// returns an error with the code [scripting.Capability]. Empty means that there is none.
	MissingCapability string
	// Blocking is a payload with a response that does not come before the context ends. Empty means
	// that there is none.
	Blocking string
}

// Run tests the host.
func (s Suite) Run(t *testing.T) {
	for _, o := range s.Operations {
		t.Run(o.Op, func(t *testing.T) {
			t.Run("answers", func(t *testing.T) { s.testResponse(t, o) })
			t.Run("answers many at once", func(t *testing.T) { s.testConcurrent(t, o) })
			t.Run("rejects malformed payloads", func(t *testing.T) { s.testMalformed(t, o) })
			t.Run("rejects missing capabilities", func(t *testing.T) { s.testMissingCapability(t, o) })
			t.Run("suspends", func(t *testing.T) { s.testSuspend(t, o) })
			t.Run("ends with its context", func(t *testing.T) { s.testContext(t, o) })
		})
	}
	t.Run("rejects unknown operations", s.testUnknown)
}

func (s Suite) testResponse(t *testing.T, o Operation) {
	if o.Payload == "" {
		t.Skip("the operation has no payload with an immediate response")
	}
	s.checkResponse(t, s.New(t), 1, o)
}

func (s Suite) checkResponse(t *testing.T, h scripting.Host, seq int, o Operation) {
	t.Helper()
	payload := []byte(o.Payload)
	answer, err := h.Do(t.Context(), seq, o.Op, payload)
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	if !o.OneWay && !json.Valid(answer) {
		t.Errorf("the response is not JSON: %.200q", answer)
	}
	if string(payload) != o.Payload {
		t.Error("the host changed the payload")
	}
	s.checkSecrets(t, string(answer))
}

// testConcurrent calls the host from several goroutines, for the race detector.
func (s Suite) testConcurrent(t *testing.T, o Operation) {
	if o.Payload == "" {
		t.Skip("the operation has no payload with an immediate response")
	}
	h := s.New(t)
	var all sync.WaitGroup
	for seq := range 8 {
		all.Go(func() { s.checkResponse(t, h, seq+1, o) })
	}
	all.Wait()
}

// testMalformed sends invalid payloads. The host must not panic, even if the response is
// ignored.
func (s Suite) testMalformed(t *testing.T, o Operation) {
	h := s.New(t)
	for _, payload := range []string{
		"", "null", "[]", "1", `"text"`, "{", "\xff", `{"x":`, "{}}",
		strings.Repeat("[", 100_000), `{"a":` + strings.Repeat(`{"a":`, 100_000),
	} {
		_, err := h.Do(t.Context(), 1, o.Op, []byte(payload))
		if err == nil && !o.OneWay {
			t.Errorf("%.40q was accepted", payload)
		}
		s.checkError(t, err)
	}
}

func (s Suite) testMissingCapability(t *testing.T, o Operation) {
	if o.MissingCapability == "" {
		t.Skip("the operation has no payload that requires a missing capability")
	}
	_, err := s.New(t).Do(t.Context(), 1, o.Op, []byte(o.MissingCapability))
	var refused *scripting.HostError
	if !errors.As(err, &refused) || refused.Code != scripting.Capability {
		t.Errorf("not refused with the code %s: %v", scripting.Capability, err)
	}
	s.checkError(t, err)
}

// testSuspend sends a payload that is suspended, from several goroutines. The host must not wait for
// the response: the context does not end.
func (s Suite) testSuspend(t *testing.T, o Operation) {
	if o.Suspended == "" {
		t.Skip("the operation has no payload that is suspended")
	}
	if o.Op != scripting.OpAsk {
		t.Fatal("only the operation ask can be suspended")
	}
	h := s.New(t)
	var all sync.WaitGroup
	for seq := range 8 {
		all.Go(func() {
			payload := []byte(o.Suspended)
			answer, err := h.Do(t.Context(), seq+1, o.Op, payload)
			if !errors.Is(err, scripting.ErrSuspended) {
				t.Errorf("not suspended: %v", err)
			}
			if answer != nil {
				t.Error("a suspended operation has a response")
			}
			if string(payload) != o.Suspended {
				t.Error("the host changed the payload")
			}
		})
	}
	all.Wait()
}

func (s Suite) testContext(t *testing.T, o Operation) {
	if o.Blocking == "" {
		t.Skip("the operation has no payload that hangs")
	}
	h := s.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Do(ctx, 1, o.Op, []byte(o.Blocking))
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("the operation succeeded although its context ended")
	}
}

func (s Suite) testUnknown(t *testing.T) {
	h := s.New(t)
	for _, op := range []string{"", "no.such.operation", "http", "../http.request", "HTTP.REQUEST"} {
		answer, err := h.Do(t.Context(), 1, op, []byte("{}"))
		if err == nil {
			t.Errorf("the unknown operation %q was accepted: %.200q", op, answer)
		}
		s.checkError(t, err)
	}
}

// checkError checks the error that a script would see.
func (s Suite) checkError(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, scripting.ErrSuspended) {
		t.Error("suspended instead of an error")
	}
	var refused *scripting.HostError
	if err == nil || !errors.As(err, &refused) {
		return // the script sees UNAVAILABLE
	}
	if !slices.Contains(scripting.HostErrorCodes(), refused.Code) {
		t.Errorf("unknown error code %q", refused.Code)
	}
	if refused.Message == "" {
		t.Error("the error has no message")
	}
	s.checkSecrets(t, refused.Message+string(refused.Details))
	s.checkDetails(t, refused)
}

// checkDetails checks the details of an error. Only a missing capability has some.
func (s Suite) checkDetails(t *testing.T, refused *scripting.HostError) {
	t.Helper()
	if refused.Code != scripting.Capability {
		if refused.Details != nil {
			t.Errorf("an error with the code %s has details", refused.Code)
		}
		return
	}
	var details struct {
		Required map[string]json.RawMessage `json:"requiredCapabilities"`
	}
	if err := json.Unmarshal(refused.Details, &details); err != nil || details.Required == nil {
		t.Error(`the details are not {"requiredCapabilities": {…}}`)
	}
}

func (s Suite) checkSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range s.Secrets {
		if secret != "" && bytes.Contains([]byte(text), []byte(secret)) {
			t.Error("a secret is visible to scripts")
		}
	}
}
