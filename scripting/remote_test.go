package scripting

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzHostResponse checks that no bytes crash the decoder of responses, and that encoding is its
// inverse.
func FuzzHostResponse(f *testing.F) {
	for _, a := range []hostResponse{
		{seq: 1, data: []byte(`{"a":1}`)}, {seq: 2, suspended: true}, {seq: 3, panicked: true},
		{seq: 4, refusal: &HostError{Code: Denied, Message: "no", Details: []byte(`{}`)}},
	} {
		f.Add(HostResponse{a}.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		seq, a, err := DecodeHostResponse(data)
		if err != nil {
			return
		}
		if again := a.Append(nil); seq != a.Seq() || !bytes.Equal(again, data) {
			t.Fatalf("%x was decoded and encoded as %x", data, again)
		}
	})
}

// recorderWithResponses returns a recorder of a call with four asks and their responses.
func recorderWithResponses(t *testing.T) *Recorder {
	t.Helper()
	r := NewRecorder(Call{Journal: NewJournal(), Seed: Seed{1}})
	for seq := 1; seq <= 4; seq++ {
		if failure, err := r.RecordCall(seq, "http.request", []byte("{}")); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		if seq < 4 {
			r.RecordResponse(HostResponse{hostResponse{seq: seq, data: []byte("{}")}})
		}
	}
	return r
}

// FuzzApplyTail checks that no tail of a hostile process crashes the recorder, that the next run
// can decode the journal, and that it equals the journal of its tail.
func FuzzApplyTail(f *testing.F) {
	f.Add([]byte{tagResponse, 2, tagTimer, 1, tagClock, 200, 1, 3, tagResponse, 1}, false)
	f.Add([]byte{tagResponse, 9}, true)
	f.Add([]byte{tagTimer, 0}, false)
	f.Fuzz(func(t *testing.T, tail []byte, end bool) {
		r := recorderWithResponses(t)
		if failure, err := r.ApplyTail(tail, end); failure != nil || err != nil {
			return
		}
		cursor := journalCursor{journal: r.book.journal}
		again, other := cursor.tail(), recorderWithResponses(t)
		if failure, err := other.ApplyTail(again, false); failure != nil || err != nil {
			t.Fatalf("the journal of %x is not that of %x: %v %v", tail, again, failure, err)
		}
		journal := marshaled(t, r.Journal())
		if again = marshaled(t, other.Journal()); !bytes.Equal(journal, again) {
			t.Fatalf("%x makes %x, and again %x", tail, journal, again)
		}
		if err := NewJournal().UnmarshalBinary(journal); err != nil {
			t.Fatalf("%x creates a journal that cannot be decoded: %v", tail, err)
		}
	})
}

// recorderWithAsks returns a recorder of a call with some asks.
func recorderWithAsks(t *testing.T, limits Limits, asks ...string) *Recorder {
	t.Helper()
	r := NewRecorder(Call{Journal: NewJournal(), Limits: limits, Seed: Seed{1}})
	for i, payload := range asks {
		if failure, err := r.RecordCall(i+1, OpAsk, []byte(payload)); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
	}
	return r
}

// TestRecorder_suspension: suspended asks from another process reach the client.
func TestRecorder_suspension(t *testing.T) {
	r := recorderWithAsks(t, Limits{}, "first", "second", "third")
	for seq, a := range map[int]hostResponse{1: {suspended: true}, 2: {refusal: &HostError{Code: NotGranted}}} {
		a.seq = seq
		if failure := r.RecordResponse(HostResponse{a}); failure != nil {
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
		if err := r.CheckOutcome(Outcome{Suspended: asks}); err == nil {
			t.Errorf("%s suspends the call", name)
		}
	}
	if err := r.CheckOutcome(Outcome{Suspended: []Ask{first}}); err != nil {
		t.Error(err)
	}
}

// TestRecorder_bufferLimit: the other process may never use the responses.
func TestRecorder_bufferLimit(t *testing.T) {
	r := recorderWithAsks(t, Limits{JournalBytes: 1000}, "a", "b")
	big := []byte(strings.Repeat("x", 500))
	if failure := r.RecordResponse(HostResponse{hostResponse{seq: 1, data: big}}); failure != nil {
		t.Fatal(failure)
	}
	if failure := r.RecordResponse(HostResponse{hostResponse{seq: 2, data: big}}); failure == nil || failure.Limit != "journal_bytes" {
		t.Errorf("got %v", failure)
	}
}

// TestRecorder_responseOrder: a process can use a response only once.
func TestRecorder_responseOrder(t *testing.T) {
	const calls = 1000
	r := recorderWithAsks(t, Limits{}, make([]string, calls)...)
	var w journalWriter
	for seq := calls; seq > 0; seq-- {
		r.RecordResponse(HostResponse{hostResponse{seq: seq, data: []byte("x")}})
		w.numbers(tagResponse, seq)
	}
	if failure, err := r.ApplyTail(w.out, false); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	if len(r.buffered) != 0 || r.bufferedBytes != 0 {
		t.Errorf("%d responses of %d bytes are left", len(r.buffered), r.bufferedBytes)
	}
	if _, err := r.ApplyTail(w.out, false); err == nil {
		t.Error("responses were used twice")
	}
}
