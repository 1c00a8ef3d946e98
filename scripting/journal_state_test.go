package scripting_test

import (
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

func TestJournal_savedState(t *testing.T) {
	j := scripting.NewJournal()
	for _, round := range []string{"first", "second"} {
		outcome := j.SaveState([]byte("kept "+round), []byte(`{"requests":[]}`))
		if len(outcome.Suspended) != 1 || string(outcome.Suspended[0].Payload) != `{"requests":[]}` {
			t.Fatalf("%s: the call is not suspended: %+v", round, outcome)
		}
		if _, _, ok := j.SavedState(); ok {
			t.Errorf("%s: it continues without a response", round)
		}
		encoded, err := j.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		j = scripting.NewJournal()
		if err := j.UnmarshalBinary(encoded); err != nil {
			t.Fatal(err)
		}
		if err := j.Answer(outcome.Suspended[0].Seq, []byte("answered "+round)); err != nil {
			t.Fatal(err)
		}
		kept, answers, ok := j.SavedState()
		if !ok || string(kept) != "kept "+round || string(answers) != "answered "+round {
			t.Errorf("it continues from %q with %q, %v", kept, answers, ok)
		}
	}
}

func TestJournal_noSavedState(t *testing.T) {
	for name, j := range map[string]*scripting.Journal{"none": nil, "an empty one": scripting.NewJournal()} {
		if _, _, ok := j.SavedState(); ok {
			t.Errorf("%s has a saved state", name)
		}
	}
}
