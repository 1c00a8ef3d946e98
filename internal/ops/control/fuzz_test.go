package control

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRequests checks that a parsed request is valid and complete, and survives a round
// trip.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{`{"control":1,"do":"status"}`, `{"control":1,"do":"reload","color":true}`, `{"do":1}`, `{"control":1,"do":"tokens"}`, `{"control":1,"do":"fleet"}`, `{"control":1,"do":"attach"}`, `{"control":1,"do":"drop_tokens","principal":"ada"}`, `{"control":1,"do":"drop_tokens","kind":"key"}`, `{"control":1,"do":"try","params": {"kind":"tool","address":"a","arguments":{"x":[1.50]}}}`, `{"control":1,"do":"keys","params":null}`, `[]`, `{"control":1e0,"do":"st\u0061tus"}`, ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			if !cmp.Equal(r, Request{}) {
				t.Errorf("rejected request: %+v", r)
			}
			return
		}
		if known, takesParams := r.Action.known(); !known || r.Params != nil && !takesParams || r.Action == DropTokens && r.Secret+r.Principal == "" {
			t.Errorf("%q parsed as %+v", line, r)
		}
		again, err := json.Marshal(wireRequest{Control: Version, Request: r})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseRequest(again); err != nil || !equalRequests(got, r) {
			t.Errorf("%s parsed as %+v, %v, want %+v", again, got, err, r)
		}
	})
}

// equalRequests compares requests. The spaces in their parameters do not count.
func equalRequests(a, b Request) bool {
	for _, r := range []*Request{&a, &b} {
		if compact, err := json.Marshal(r.Params); err == nil && r.Params != nil {
			r.Params = compact
		}
	}
	return cmp.Equal(a, b)
}

// Sweeps each construct over sizes that fuzzing does not reach.
func TestAsk_maxSizes(t *testing.T) {
	for _, piece := range []string{"[", `{"a":`, `"`, " ", "1", "-", "\x00", `\u00`, `{"control":1,"do":"status"}`, `{"control":1,"do":"try","params":`, `{"control":1,"do":"try","params":"`} {
		for size := 10; size <= 1_000_000; size *= 10 {
			line := []byte(strings.Repeat(piece, size))
			if _, err := parseRequest(line); err == nil {
				t.Errorf("%d times %q parsed as a request", size, piece)
			}
			if err := parseAnswer(line, &Request{}); err == nil {
				t.Errorf("%d times %q parsed as a response", size, piece)
			}
		}
	}
}
