package worker

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// deep is JSON that is nested so deep.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// malformed are frames that no process sends, as what follows the id of the call.
var malformed = map[string]struct {
	kind    byte
	content []byte
}{
	"a host call without a number":       {frameHost, nil},
	"a host call cut off":                {frameHost, []byte("\x01\x7fhttp")},
	"a host call by no number":           {frameHost, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
	"a host call by a huge number":       {frameHost, append(uvarint(1<<40), 0, 0)},
	"a tail that is none":                {frameHost, (&hostFrame{seq: 1, op: "http.request", tail: []byte{99}, payload: []byte("{}")}).append(nil)},
	"an answer that was not given":       {frameHost, (&hostFrame{seq: 1, op: "http.request", tail: []byte{2, 1}, payload: []byte("{}")}).append(nil)},
	"the second host call":               {frameHost, (&hostFrame{seq: 2, op: "http.request", payload: []byte("{}")}).append(nil)},
	"an operation of a long name":        {frameHost, (&hostFrame{seq: 1, op: strings.Repeat("x", 1000), payload: []byte("{}")}).append(nil)},
	"a payload of nothing":               {frameHost, (&hostFrame{seq: 1, op: "http.request"}).append(nil)},
	"a payload cut off":                  {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{"a":`)}).append(nil)},
	"a payload with a name twice":        {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{"a":1,"a":2}`)}).append(nil)},
	"a payload with text behind it":      {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte(`{} {}`)}).append(nil)},
	"a payload that is no text":          {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte("\"\xff\"")}).append(nil)},
	"a payload with a huge number":       {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte("1e999")}).append(nil)},
	"a payload too deep":                 {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte(deep(bounds().Depth + 1))}).append(nil)},
	"a payload deeper than stacks":       {frameHost, (&hostFrame{seq: 1, op: "http.request", payload: []byte(deep(2_000_000))}).append(nil)},
	"a message too deep":                 {frameHost, (&hostFrame{seq: 1, op: "log", payload: []byte(deep(1000))}).append(nil)},
	"a question too deep":                {frameHost, (&hostFrame{seq: 1, op: "ask", payload: []byte(deep(1000))}).append(nil)},
	"an outcome of nothing":              {frameOutcome, (&outcomeFrame{}).append(nil)},
	"an outcome cut off":                 {frameOutcome, []byte{200}},
	"an outcome of no kind":              {frameOutcome, (&outcomeFrame{outcome: []byte{9, 1}}).append(nil)},
	"a result too deep":                  {frameOutcome, result(deep(1000))},
	"a failure that is none":             {frameOutcome, (&outcomeFrame{outcome: []byte("\x01{")}).append(nil)},
	"a failure too deep":                 {frameOutcome, (&outcomeFrame{outcome: []byte("\x01" + `{"Other":` + deep(1000) + "}")}).append(nil)},
	"a failure with another behind it":   {frameOutcome, (&outcomeFrame{outcome: []byte("\x01{}{}")}).append(nil)},
	"questions too deep":                 {frameOutcome, (&outcomeFrame{outcome: []byte("\x02" + deep(2_000_000))}).append(nil)},
	"a frame of a kind that we send":     {frameAnswer, nil},
	"a frame of no kind":                 {'?', nil},
	"an end of a host call by no number": {frameDrop, nil},
}

// result is the outcome of a body that returns a value.
func result(value string) []byte {
	text, err := (scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: []byte(value)}}).AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return (&outcomeFrame{outcome: text}).append(nil)
}

func init() {
	for name, frame := range malformed {
		programs["sends "+name] = hostile(func(id uint64, kind byte, _ []byte) {
			if kind == frameCall {
				_ = writeFrame(os.Stdout, frame.kind, append(uvarint(id), frame.content...))
			}
		})
	}
	programs["announces more than comes"] = hostile(func(_ uint64, kind byte, _ []byte) {
		if kind == frameCall {
			_, _ = os.Stdout.Write([]byte{frameOutcome, 1, 0, 0, 0, 'x'})
			os.Exit(1)
		}
	})
	programs["announces too much"] = hostile(func(_ uint64, kind byte, _ []byte) {
		if kind == frameCall {
			_, _ = os.Stdout.Write([]byte{frameOutcome, 0xff, 0xff, 0xff, 0xff})
		}
	})
}

// TestAMalformedFrameEndsItsProcessAndReachesNobody, however deep or long it is.
func TestAMalformedFrameEndsItsProcessAndReachesNobody(t *testing.T) {
	heard := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		t.Errorf("heard %.100s with %d bytes", op, len(payload))
		return []byte("{}"), nil
	})
	names := []string{"announces more than comes", "announces too much"}
	for name := range malformed {
		names = append(names, "sends "+name)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if _, out := run(t, name, heard); !limited(out, "process") {
				t.Errorf("got %+v", out)
			}
		})
	}
}
