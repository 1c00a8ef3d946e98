package scripting

import "encoding/json"

// Called is a call of a tool that code has made.
type Called struct {
	// Seq is the number of the host call, and Tool the name of the tool.
	Seq  int
	Tool string
	// Code is that by which the call has failed, "" of one that has not; Ended is false
	// while nothing is known of it.
	Code  string
	Ended bool
}

// Calls returns the calls that the code of the call has made, in this run and those before
// it, in the order of asking. One that has waited for the client is told of once.
func (j *Journal) Calls() []Called {
	var calls []Called
	at := map[int]int{}
	for i := range j.entries {
		switch e := &j.entries[i]; {
		case e.kind == entryAsked && len(e.answer) > 0:
			at[e.seq] = len(calls)
			calls = append(calls, Called{Seq: e.seq, Tool: string(e.answer)})
		case e.kind == entryAnswered:
			if n, ok := at[e.seq]; ok {
				calls[n].Ended = true
				if e.refusal != nil {
					calls[n].Code = e.refusal.Code
				}
			}
		}
	}
	kept := calls[:0]
	for _, c := range calls {
		if c.Code != Asks {
			kept = append(kept, c)
		}
	}
	return kept
}

// Begun returns how many calls of tools the body of the call has begun, in this run and those
// before it. One that goes on is no other.
func (j *Journal) Begun() (calls int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryAsked && e.op == opCall {
			calls++
		}
	}
	return calls
}

// CallDigest tells a call that code makes apart from others: by its tool, and by the text
// of its arguments.
func CallDigest(tool string, arguments json.RawMessage) [16]byte {
	return digestOf(mustJSON(toolRequest{Tool: tool, Arguments: arguments}))
}

// Made returns how often the code of the call has made a call of that digest.
func (j *Journal) Made(call [16]byte) (times int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryAsked && e.op == opCall && e.digest == call {
			times++
		}
	}
	return times
}

// maxCalled bounds the name of a tool that a journal keeps, in bytes.
const maxCalled = 256

// called returns the name of the tool that a host call of code calls; nil of any other.
func (p *Program) called(op string, payload []byte) []byte {
	if op != opCall && op != opResume || p == nil || p.kind != Code {
		return nil
	}
	var request struct{ Tool string }
	if json.Unmarshal(payload, &request) != nil || request.Tool == "" {
		return nil
	}
	return []byte(request.Tool[:min(len(request.Tool), maxCalled)])
}
