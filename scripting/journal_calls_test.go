package scripting

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJournal_answeredInputs: each request has its response; a pending one has none.
func TestJournal_answeredInputs(t *testing.T) {
	details := func(tool string) string {
		return `{"requests":[{"key":"` + tool + `_<1>","method":"elicitation/create","params":{}}],"state":{"state":"` + tool + `","keys":{}}}`
	}
	host := &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
		switch tool := "crm_list"; {
		case op == OpAsk:
			return nil, ErrSuspended
		case strings.Contains(string(payload), "read_file"):
			tool = "read_file"
			fallthrough
		default:
			return nil, &HostError{Code: Asks, Message: "it asks", Details: []byte(details(tool))}
		}
	}}
	c := call(compiled(t, codeOf(`await parallel([crm.list({}), read_file({})])`)), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, host)
	if len(out.Suspended) != 2 {
		t.Fatalf("got %s", shown(out))
	}
	if got := c.Journal.AnsweredInputs(); got != nil {
		t.Errorf("without a response: %s", got)
	}
	const responses = `{"read_file_<1>":{"action":"decline"}}`
	of := slices.IndexFunc(out.Suspended, func(a Ask) bool { return strings.Contains(string(a.Payload), "read_file") })
	if err := c.Journal.Answer(out.Suspended[of].Seq, []byte(`{"responses":`+responses+`}`)); err != nil {
		t.Fatal(err)
	}
	again := reread(t, c.Journal)
	want := []AnsweredInput{{[]byte(details("read_file")), []byte(responses)}}
	if diff := cmp.Diff(want, again.AnsweredInputs()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
