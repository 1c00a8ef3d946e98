package scripting

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzHostResponse holds that no bytes crash who reads an answer to a host call, and that
// what is one is written as it was read.
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
			t.Fatalf("%x was read and written as %x", data, again)
		}
	})
}

// followed is a recorder of a call which has asked four times and was answered.
func followed(t *testing.T) *Recorder {
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

// FuzzApplyTail holds that no tail crashes who keeps the journal of a process that may
// lie, that the journal can be read by the next, and that it is what the tail of that
// one would make of it.
func FuzzApplyTail(f *testing.F) {
	f.Add([]byte{tagAnswered, 2, tagFired, 1, tagClock, 200, 1, 3, tagAnswered, 1}, false)
	f.Add([]byte{tagAnswered, 9}, true)
	f.Add([]byte{tagFired, 0}, false)
	f.Fuzz(func(t *testing.T, tail []byte, end bool) {
		r := followed(t)
		if failure, err := r.ApplyTail(tail, end); failure != nil || err != nil {
			return
		}
		told := journalCursor{journal: r.book.journal}
		again, other := told.tail(), followed(t)
		if failure, err := other.ApplyTail(again, false); failure != nil || err != nil {
			t.Fatalf("%x, which was followed, is not as %x: %v %v", tail, again, failure, err)
		}
		journal := marshaled(t, r.Journal())
		if again = marshaled(t, other.Journal()); !bytes.Equal(journal, again) {
			t.Fatalf("%x makes %x, and again %x", tail, journal, again)
		}
		if err := NewJournal().UnmarshalBinary(journal); err != nil {
			t.Fatalf("%x makes a journal that cannot be read: %v", tail, err)
		}
	})
}

// begun returns a recorder whose call has made as many asks.
func begun(t *testing.T, limits Limits, asks ...string) *Recorder {
	t.Helper()
	r := NewRecorder(Call{Journal: NewJournal(), Limits: limits, Seed: Seed{1}})
	for i, payload := range asks {
		if failure, err := r.RecordCall(i+1, OpAsk, []byte(payload)); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
	}
	return r
}

// TestRecorder_suspension: what another process says to wait for
// reaches the client.
func TestRecorder_suspension(t *testing.T) {
	r := begun(t, Limits{}, "first", "second", "third")
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

// TestRecorder_bufferLimit: the other process may never say that
// it has come to one.
func TestRecorder_bufferLimit(t *testing.T) {
	r := begun(t, Limits{JournalBytes: 1000}, "a", "b")
	big := []byte(strings.Repeat("x", 500))
	if failure := r.RecordResponse(HostResponse{hostResponse{seq: 1, data: big}}); failure != nil {
		t.Fatal(failure)
	}
	if failure := r.RecordResponse(HostResponse{hostResponse{seq: 2, data: big}}); failure == nil || failure.Limit != "journal_bytes" {
		t.Errorf("got %v", failure)
	}
}

// TestRecorder_responseOrder: what a process has come to it cannot come to
// again.
func TestRecorder_responseOrder(t *testing.T) {
	const calls = 1000
	r := begun(t, Limits{}, make([]string, calls)...)
	var w journalWriter
	for seq := calls; seq > 0; seq-- {
		r.RecordResponse(HostResponse{hostResponse{seq: seq, data: []byte("x")}})
		w.numbers(tagAnswered, seq)
	}
	if failure, err := r.ApplyTail(w.out, false); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	if len(r.buffered) != 0 || r.bufferedBytes != 0 {
		t.Errorf("%d answers of %d bytes are left", len(r.buffered), r.bufferedBytes)
	}
	if _, err := r.ApplyTail(w.out, false); err == nil {
		t.Error("answers were taken twice")
	}
}
