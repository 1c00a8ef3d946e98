// Package hosttest checks that an implementation of [scripting.Host] keeps the
// contract that executors rely on, in the manner of testing/slogtest.
//
// Describe the host as a [Suite], with one [Operation] for each operation that
// it answers, and call [Suite.Run] from a test. Run the test with the race
// detector: operations come from several goroutines at once.
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

// Suite is a host and what it can do.
type Suite struct {
	// New returns a host that no other test uses.
	New func(t *testing.T) scripting.Host
	// Operations are answered by the host without a refusal.
	Operations []Operation
	// Secrets must appear in no answer and no refusal.
	Secrets []string
}

// Operation is one thing that a script may ask.
type Operation struct {
	// Op is the name of the operation, such as "http.request".
	Op string
	// Payload is JSON that the host answers. Empty means that it answers none
	// at once.
	Payload string
	// Told says that the answer is ignored, so that it may be anything.
	Told bool
	// Suspended is a payload that the host cannot answer at once: it returns
	// [scripting.ErrSuspended], soon. Only the operation ask may have one.
	// Empty means that there is none.
	Suspended string
	// Incapable is a payload that no client of the call can answer: it is
	// refused with the code [scripting.Capability]. Empty means that there is none.
	Incapable string
	// Hung is a payload whose answer does not come before its context ends.
	// Empty means that there is none.
	Hung string
}

// Run checks the host.
func (s Suite) Run(t *testing.T) {
	for _, o := range s.Operations {
		t.Run(o.Op, func(t *testing.T) {
			t.Run("answers", func(t *testing.T) { s.answers(t, o) })
			t.Run("answers many at once", func(t *testing.T) { s.answersMany(t, o) })
			t.Run("refuses what is malformed", func(t *testing.T) { s.refusesMalformed(t, o) })
			t.Run("refuses what nobody can answer", func(t *testing.T) { s.refusesIncapable(t, o) })
			t.Run("suspends what is answered later", func(t *testing.T) { s.suspends(t, o) })
			t.Run("ends with its context", func(t *testing.T) { s.endsWithContext(t, o) })
		})
	}
	t.Run("refuses what it does not know", s.refusesUnknown)
}

func (s Suite) answers(t *testing.T, o Operation) {
	if o.Payload == "" {
		t.Skip("the operation has no payload that is answered at once")
	}
	s.checkAnswer(t, s.New(t), 1, o)
}

func (s Suite) checkAnswer(t *testing.T, h scripting.Host, seq int, o Operation) {
	t.Helper()
	payload := []byte(o.Payload)
	answer, err := h.Do(t.Context(), seq, o.Op, payload)
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	if !o.Told && !json.Valid(answer) {
		t.Errorf("the answer is not JSON: %.200q", answer)
	}
	if string(payload) != o.Payload {
		t.Error("the host changed the payload, which is not its own")
	}
	s.checkSecrets(t, string(answer))
}

// answersMany asks from several goroutines, for the race detector to see.
func (s Suite) answersMany(t *testing.T, o Operation) {
	if o.Payload == "" {
		t.Skip("the operation has no payload that is answered at once")
	}
	h := s.New(t)
	var all sync.WaitGroup
	for seq := range 8 {
		all.Go(func() { s.checkAnswer(t, h, seq+1, o) })
	}
	all.Wait()
}

// refusesMalformed sends what no executor sends. A host must not panic on it,
// whatever it answers where the answer is ignored.
func (s Suite) refusesMalformed(t *testing.T, o Operation) {
	h := s.New(t)
	for _, payload := range []string{
		"", "null", "[]", "1", `"text"`, "{", "\xff", `{"x":`, "{}}",
		strings.Repeat("[", 100_000), `{"a":` + strings.Repeat(`{"a":`, 100_000),
	} {
		_, err := h.Do(t.Context(), 1, o.Op, []byte(payload))
		if err == nil && !o.Told {
			t.Errorf("%.40q was answered", payload)
		}
		s.checkRefusal(t, err)
	}
}

func (s Suite) refusesIncapable(t *testing.T, o Operation) {
	if o.Incapable == "" {
		t.Skip("the operation has no payload that needs what clients lack")
	}
	_, err := s.New(t).Do(t.Context(), 1, o.Op, []byte(o.Incapable))
	var refused *scripting.HostError
	if !errors.As(err, &refused) || refused.Code != scripting.Capability {
		t.Errorf("not refused with the code %s: %v", scripting.Capability, err)
	}
	s.checkRefusal(t, err)
}

// suspends asks what is answered later, from several goroutines. The host must
// not wait for the answer: the context does not end.
func (s Suite) suspends(t *testing.T, o Operation) {
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
				t.Error("there is an answer to what is suspended")
			}
			if string(payload) != o.Suspended {
				t.Error("the host changed the payload, which the call keeps until the answer comes")
			}
		})
	}
	all.Wait()
}

func (s Suite) endsWithContext(t *testing.T, o Operation) {
	if o.Hung == "" {
		t.Skip("the operation has no payload that hangs")
	}
	h := s.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Do(ctx, 1, o.Op, []byte(o.Hung))
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("the operation succeeded although its context ended")
	}
}

func (s Suite) refusesUnknown(t *testing.T) {
	h := s.New(t)
	for _, op := range []string{"", "no.such.operation", "http", "../http.request", "HTTP.REQUEST"} {
		answer, err := h.Do(t.Context(), 1, op, []byte("{}"))
		if err == nil {
			t.Errorf("the unknown operation %q was answered: %.200q", op, answer)
		}
		s.checkRefusal(t, err)
	}
}

// checkRefusal checks what a script would see of an error.
func (s Suite) checkRefusal(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, scripting.ErrSuspended) {
		t.Error("what should be refused was suspended")
	}
	var refused *scripting.HostError
	if err == nil || !errors.As(err, &refused) {
		return // a script sees nothing of it
	}
	if !slices.Contains(scripting.HostErrorCodes(), refused.Code) {
		t.Errorf("the code %q is none of those that scripts know", refused.Code)
	}
	if refused.Message == "" {
		t.Error("the refusal says nothing")
	}
	s.checkSecrets(t, refused.Message+string(refused.Details))
	s.checkDetails(t, refused)
}

// checkDetails checks what only a refusal for want of a capability has.
func (s Suite) checkDetails(t *testing.T, refused *scripting.HostError) {
	t.Helper()
	if refused.Code != scripting.Capability {
		if refused.Details != nil {
			t.Errorf("a refusal with the code %s has details", refused.Code)
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
			t.Error("a secret appears in what a script can see")
		}
	}
}
