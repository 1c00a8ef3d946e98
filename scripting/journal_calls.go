package scripting

import "encoding/json"

// Called is a call of a tool that code has made.
type ToolCall struct {
	// Seq is the number of the host call, and Tool the name of the tool.
	Seq  int
	Tool string
	// Code is that by which the call has failed, "" of one that has not; Ended is false
	// while nothing is known of it.
	Code string
	Done bool
}

// Calls returns the calls that the code of the call has made, in this run and those before
// it, in the order of asking. One that has waited for the client is told of once.
func (j *Journal) ToolCalls() []ToolCall {
	var calls []ToolCall
	at := map[int]int{}
	for i := range j.entries {
		switch e := &j.entries[i]; {
		case e.kind == entryCall && len(e.answer) > 0:
			at[e.seq] = len(calls)
			calls = append(calls, ToolCall{Seq: e.seq, Tool: string(e.answer)})
		case e.kind == entryResponse:
			if n, ok := at[e.seq]; ok {
				calls[n].Done = true
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
func (j *Journal) ToolCallCount() (calls int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryCall && e.op == OpCall {
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
func (j *Journal) CountByDigest(call [16]byte) (times int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryCall && e.op == OpCall && e.digest == call {
			times++
		}
	}
	return times
}

// Answered is what a call of code has asked its client, which has answered.
type AnsweredInput struct {
	// Details are those of the refusal by which the host has had the call ask (see [Asks]),
	// and Responses the answers of the client to them, by their keys.
	Details, Responses json.RawMessage
}

// Answered returns what calls of code have asked and their client has answered, in the runs
// before this one.
func (j *Journal) AnsweredInputs() (all []AnsweredInput) {
	asks, responses := map[int][16]byte{}, map[[16]byte]json.RawMessage{}
	for i := range j.entries {
		e := &j.entries[i]
		digest, asked := asks[e.seq]
		switch {
		case e.kind == entryCall && e.op == OpAsk:
			asks[e.seq] = e.digest
		case e.kind == entryResponse && asked && e.refusal == nil:
			var a struct{ Responses json.RawMessage }
			if json.Unmarshal(e.answer, &a) == nil {
				responses[digest] = a.Responses
			}
		}
	}
	for i := range j.entries {
		e := &j.entries[i]
		if e.kind != entryResponse || e.refusal == nil || e.refusal.Code != Asks {
			continue
		}
		var asks inputRequired
		if json.Unmarshal(e.refusal.Details, &asks) != nil {
			continue
		}
		if given, is := responses[digestOf(asks.payload())]; is {
			all = append(all, AnsweredInput{e.refusal.Details, given})
		}
	}
	return all
}

// maxCalled bounds the name of a tool that a journal keeps, in bytes.
const maxToolName = 256

// toolCalled returns the name of the tool that a host call of code calls; nil of any other.
func calledTool(kind Kind, op string, payload []byte) []byte {
	if op != OpCall && op != OpResume || kind != Code {
		return nil
	}
	var request struct{ Tool string }
	if json.Unmarshal(payload, &request) != nil || request.Tool == "" {
		return nil
	}
	return []byte(request.Tool[:min(len(request.Tool), maxToolName)])
}

// opPause is what a body that is no program notes in its journal when it asks.
const opSavedState = "pause"

// Pause has a call wait whose body is no program: kept is what the next run of the body
// goes on from, and payload what is asked, that of the operation ask. What the journal
// held before it holds no longer. [Journal.Answer] takes the answers.
func (j *Journal) SaveState(kept, payload []byte) Outcome {
	*j = Journal{seed: j.seed}
	j.add(journalEntry{kind: entryCall, seq: 1, op: opSavedState})
	j.add(journalEntry{kind: entryResponse, seq: 1, answer: kept})
	j.add(journalEntry{kind: entryCall, seq: 2, op: OpAsk, digest: digestOf(payload)})
	return Outcome{Suspended: []Ask{{Seq: 2, Payload: payload}}}
}

// Paused returns what [Journal.Pause] kept, and the answers to what was asked then; false
// where the call was not suspended so, or nothing has answered.
func (j *Journal) SavedState() (kept, answers []byte, ok bool) {
	if j == nil || len(j.entries) != 4 || j.entries[0].op != opSavedState || j.entries[3].kind != entryResponse || j.entries[3].refusal != nil {
		return nil, nil, false
	}
	return j.entries[1].answer, j.entries[3].answer, true
}
