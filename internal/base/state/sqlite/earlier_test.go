package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An earlier version wrote the file. It also sealed the two states beside it: a small
// one, and one with its journal in the file.
func TestOpen_fileOfEarlierVersion(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "state", "state.db")
	check(os.Mkdir(filepath.Dir(path), 0o700))
	before, err := os.ReadFile("testdata/before-extensions.db")
	check(err)
	check(os.WriteFile(path, before, 0o600))
	text, err := os.ReadFile("testdata/before-extensions.txt")
	check(err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	s, err := sqlite.Open(path, state.Options{Now: clock}, 0)
	check(err)
	defer func() { check(s.Close()) }()

	ann := state.Owner{ID: "ann", Kind: "token", Issuer: "https://idp.example", Agent: "planner"}
	want := state.State{
		Owner: ann, Definition: [32]byte{1}, Arguments: [32]byte{2}, Expires: now.Add(5 * time.Minute), Root: "root", Leg: 4, Start: now.Add(-time.Second), Used: 6 * time.Millisecond,
		Consent: state.Consent{To: [32]byte{3}, Given: true, Asked: 1}, Asks: []state.Ask{{Seq: 7, Payload: []byte(`{"a":1}`)}, {Seq: 8}}, Journal: []byte("journal"),
	}
	for _, sealed := range strings.Fields(string(text)) {
		got, err := state.NewSealer(s, clock).Open(sealed, state.Want{Owner: ann, Definition: want.Definition, Arguments: want.Arguments})
		check(err)
		want.Nonce = got.Nonce
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sealed state (-want +got)\n%s", diff)
		}
		want.Journal = bytes.Repeat([]byte("journal "), 2000)
	}
	if journal, err := s.Journal(state.Nonce{4}); err != nil || string(journal) != "kept" {
		t.Errorf("journal: %q, %v", journal, err)
	}
	for n, want := range map[byte]error{1: nil, 2: state.ErrLost, 3: state.ErrLost} {
		c, err := s.Claim(t.Context(), ann, state.Nonce{n}, now.Add(time.Minute))
		if c.Won || !errors.Is(err, want) || want == nil && string(c.Answer) != "answer" {
			t.Errorf("claim %d: %q, %v", n, c.Answer, err)
		}
	}
	const restarted = "the server was restarted while the task ran, and its effects are unknown; check before you repeat the call"
	for _, want := range []state.Task{
		{ID: "4KCQ4SG5SIN7CC4Q4RUJDH72UZ", Tool: "works", Status: state.Failed, Message: restarted},
		{ID: "QPS5MVK65J3ERKMSDEYRODC7B7", Tool: "waits", Status: state.InputRequired, Requests: []byte("[1]"), Held: []byte("held")},
		{ID: "PIAO2BHXXA3AUXOZ2Y2LZYZS4N", Tool: "done", Status: state.Completed, Message: "m", Result: []byte("{}")},
		{ID: "GQXVHVI6NGTGURJFOOR3QBRD4R", Tool: "cancel", Status: state.Cancelled},
	} {
		want.Owner, want.Created, want.Updated, want.TTL, want.Poll = ann, now, now, time.Hour, time.Second
		got, err := s.Task(ann, want.ID)
		check(err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("task (-want +got)\n%s", diff)
		}
	}
	for key, want := range map[string]state.Pair{"ever": {Value: []byte(`"v"`)}, "hour": {Value: []byte("1"), Expires: now.Add(time.Hour)}} {
		got, err := s.Pair("tool\x00t", key)
		check(err)
		if string(got.Value) != string(want.Value) || !got.Expires.Equal(want.Expires) {
			t.Errorf("%s: got %s until %v", key, got.Value, got.Expires)
		}
	}
}
