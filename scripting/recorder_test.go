package scripting

import (
	"strings"
	"testing"
)

// begun returns a recorder whose call has made as many asks.
func begun(t *testing.T, limits Limits, asks ...string) *Recorder {
	t.Helper()
	r := NewRecorder(Call{Journal: NewJournal(), Limits: limits, Seed: Seed{1}})
	for i, payload := range asks {
		if failure, err := r.Began(i+1, opAsk, []byte(payload)); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
	}
	return r
}

// TestOnlyWhatTheHostPutOffSuspendsACall: what another process says to wait for
// reaches the client.
func TestOnlyWhatTheHostPutOffSuspendsACall(t *testing.T) {
	r := begun(t, Limits{}, "first", "second", "third")
	for seq, a := range map[int]answer{1: {suspended: true}, 2: {refusal: &HostError{Code: NotGranted}}} {
		a.seq = seq
		if failure := r.Given(Answer{a}); failure != nil {
			t.Fatal(failure)
		}
	}
	first := Ask{1, []byte("first")}
	for name, asks := range map[string][]Ask{
		"other words":       {{1, []byte("other")}},
		"what was refused":  {{2, []byte("second")}},
		"what is not heard": {{3, []byte("third")}},
		"what never was":    {{4, []byte("fourth")}},
		"the same twice":    {first, first},
	} {
		if err := r.Ended(Outcome{Suspended: asks}); err == nil {
			t.Errorf("%s suspends the call", name)
		}
	}
	if err := r.Ended(Outcome{Suspended: []Ask{first}}); err != nil {
		t.Error(err)
	}
}

// TestAnswersThatNobodyComesToAreBounded: the other process may never say that
// it has come to one.
func TestAnswersThatNobodyComesToAreBounded(t *testing.T) {
	r := begun(t, Limits{JournalBytes: 1000}, "a", "b")
	big := []byte(strings.Repeat("x", 500))
	if failure := r.Given(Answer{answer{seq: 1, data: big}}); failure != nil {
		t.Fatal(failure)
	}
	if failure := r.Given(Answer{answer{seq: 2, data: big}}); failure == nil || failure.Limit != "journal_bytes" {
		t.Errorf("got %v", failure)
	}
}

// TestAnswersAreTakenOnceInAnyOrder: what a process has come to it cannot come to
// again.
func TestAnswersAreTakenOnceInAnyOrder(t *testing.T) {
	const calls = 1000
	r := begun(t, Limits{}, make([]string, calls)...)
	var w journalWriter
	for seq := calls; seq > 0; seq-- {
		r.Given(Answer{answer{seq: seq, data: []byte("x")}})
		w.numbers(tagAnswered, seq)
	}
	if failure, err := r.Follow(w.out, false); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	if len(r.given) != 0 || r.held != 0 {
		t.Errorf("%d answers of %d bytes are left", len(r.given), r.held)
	}
	if _, err := r.Follow(w.out, false); err == nil {
		t.Error("answers were taken twice")
	}
}
