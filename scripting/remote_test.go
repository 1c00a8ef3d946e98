package scripting

import (
	"bytes"
	"testing"
)

// FuzzAnswer holds that no bytes crash who reads an answer to a host call, and that
// what is one is written as it was read.
func FuzzAnswer(f *testing.F) {
	for _, a := range []answer{
		{seq: 1, data: []byte(`{"a":1}`)}, {seq: 2, suspended: true}, {seq: 3, panicked: true},
		{seq: 4, refusal: &HostError{Code: Denied, Message: "no", Details: []byte(`{}`)}},
	} {
		f.Add(Answer{a}.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		seq, a, err := ReadAnswer(data)
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
		if failure, err := r.Began(seq, "http.request", []byte("{}")); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		if seq < 4 {
			r.Given(Answer{answer{seq: seq, data: []byte("{}")}})
		}
	}
	return r
}

// FuzzFollow holds that no tail crashes who keeps the journal of a process that may
// lie, that the journal can be read by the next, and that it is what the tail of that
// one would make of it.
func FuzzFollow(f *testing.F) {
	f.Add([]byte{tagAnswered, 2, tagFired, 1, tagClock, 200, 1, 3, tagAnswered, 1}, false)
	f.Add([]byte{tagAnswered, 9}, true)
	f.Add([]byte{tagFired, 0}, false)
	f.Fuzz(func(t *testing.T, tail []byte, end bool) {
		r := followed(t)
		if failure, err := r.Follow(tail, end); failure != nil || err != nil {
			return
		}
		told := book{journal: r.book.journal}
		again, other := told.tail(), followed(t)
		if failure, err := other.Follow(again, false); failure != nil || err != nil {
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
