package codeact

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// tally counts all calls, and the approved ones.
type tally struct{ made, approved int }

func (*tally) Tools(context.Context) []*catalog.Entry { return nil }
func (*tally) Catalog() *catalog.Catalog              { return nil }

func (t *tally) Call(_ context.Context, r catalog.CodeCall) (catalog.CodeReply, error) {
	t.made++
	if r.Approved {
		t.approved++
	}
	return catalog.CodeReply{Value: json.RawMessage("1")}, nil
}

// A new call that claims to be resumed is still counted, and is not approved.
func TestHost_compromisedProcessCallLimit(t *testing.T) {
	made := &tally{}
	h := &host{
		survey: made, tools: []string{"pay"}, maxCalls: 2, remaining: 2, slots: make(chan struct{}, 1), deadline: time.Now().Add(time.Hour),
		approved: map[[16]byte]int{scripting.CallDigest("pay", json.RawMessage("{}")): 1},
	}
	var codes []string
	for seq, c := range [][2]string{
		{"call", `{"tool":"pay","arguments":{}}`},
		{"call", `{"tool":"pay","arguments":{}}`},
		{"call", `{"tool":"pay","arguments":{}}`},
		{"call", `{"tool":"pay","arguments":{},"resume":{"state":{"state":""}}}`},
		{"call", `{"tool":"pay","arguments":{},"resume":{"state":{"state":"x"}}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":{"state":{"state":""}}}`},
		{"resume", `{"tool":"pay","arguments":{}}`},
		{"call", `{"tool":"pay","arguments":{},"again":1}`},
		{"fetch", `{}`},
	} {
		_, err := h.Do(t.Context(), seq+1, c[0], []byte(c[1]))
		refused := &scripting.HostError{Code: "made"}
		errors.As(err, &refused)
		codes = append(codes, refused.Code)
	}
	want := []string{"made", "made", scripting.Denied, scripting.Invalid, scripting.Invalid, scripting.Invalid, scripting.Invalid, scripting.Invalid, scripting.NotGranted}
	if diff := cmp.Diff(want, codes); diff != "" || made.made != 2 || made.approved != 1 {
		t.Errorf("%d calls, %d approved (-want +got)\n%s", made.made, made.approved, diff)
	}
}

// wary requests input from its user before it does anything.
type wary struct{ made int }

func (*wary) Tools(context.Context) []*catalog.Entry { return nil }
func (*wary) Catalog() *catalog.Catalog              { return nil }

func (w *wary) Call(_ context.Context, r catalog.CodeCall) (catalog.CodeReply, error) {
	if r.Resume == nil {
		form := call.AskRequest{Key: "approval", Method: "elicitation/create", Params: json.RawMessage("{}")}
		return catalog.CodeReply{Ask: &call.Ask{State: "sealed", Requests: []call.AskRequest{form}}}, nil
	}
	w.made++
	return catalog.CodeReply{Value: json.RawMessage("1")}, nil
}

// A suspended call only resumes with the exact responses of the client.
func TestHost_compromisedProcessForgedResponse(t *testing.T) {
	const theirs = `{"state":{"state":"sealed","keys":{"pay_1_approval":"approval"}},"responses":{"pay_1_approval":{"action":"decline"}}}`
	var given resumeInput
	if err := json.Unmarshal([]byte(theirs), &given); err != nil {
		t.Fatal(err)
	}
	asks := &wary{}
	h := &host{
		survey: asks, tools: []string{"pay"}, maxCalls: 2, remaining: 2, slots: make(chan struct{}, 1), deadline: time.Now().Add(time.Hour),
		resumable: map[[sha256.Size]byte]bool{given.hash(): true},
	}
	var codes []string
	for seq, c := range [][2]string{
		{"call", `{"tool":"pay","arguments":{}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":{"state":{"state":"sealed","keys":{"pay_1_approval":"approval"}},"responses":{"pay_1_approval":{"action":"accept"}}}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":{"state":{"state":"sealed","keys":{"note_7":"approval"}},"responses":{"note_7":{"action":"accept"}}}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":{"state":{"state":"other","keys":{"pay_1_approval":"approval"}},"responses":{"pay_1_approval":{"action":"decline"}}}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":{"state":{"state":"sealed","keys":{}},"responses":{}}}`},
		{"resume", `{"tool":"pay","arguments":{},"resume":` + theirs + `}`},
	} {
		_, err := h.Do(t.Context(), seq+1, c[0], []byte(c[1]))
		refused := &scripting.HostError{Code: "made"}
		errors.As(err, &refused)
		codes = append(codes, refused.Code)
	}
	want := []string{scripting.Asks, scripting.NotGranted, scripting.NotGranted, scripting.NotGranted, scripting.NotGranted, "made"}
	if diff := cmp.Diff(want, codes); diff != "" || asks.made != 1 {
		t.Errorf("%d resumed calls (-want +got)\n%s", asks.made, diff)
	}
}
