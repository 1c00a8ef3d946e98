package scripting

import "encoding/json"

// ToolCall is a call of a tool by agent code.
type ToolCall struct {
	// Seq is the number of the host call, and Tool the name of the tool.
	Seq  int
	Tool string
	// Code is the error code of a failed call, otherwise empty. Done is false until the call has a
	// response.
	Code string
	Done bool
}

// ToolCalls returns the tool calls of the code, in this run and earlier runs, in the order of the
// calls. A call that waited for the client is listed once.
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

// ToolCallCount returns the number of tool calls that the code started, in this run and earlier
// runs. A resumed call counts once.
func (j *Journal) ToolCallCount() (calls int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryCall && e.op == OpCall {
			calls++
		}
	}
	return calls
}

// CallDigest returns a digest that identifies a tool call by its tool and its encoded arguments.
func CallDigest(tool string, arguments json.RawMessage) [16]byte {
	return digestOf(mustJSON(toolRequest{Tool: tool, Arguments: arguments}))
}

// CountByDigest returns how often the code has made a tool call with this digest.
func (j *Journal) CountByDigest(call [16]byte) (times int) {
	for i := range j.entries {
		if e := &j.entries[i]; e.kind == entryCall && e.op == OpCall && e.digest == call {
			times++
		}
	}
	return times
}

// AnsweredInput is an input request of a tool call, with the responses of the client.
type AnsweredInput struct {
	// Details are the details of the refusal with the requests (see [Asks]). Responses are the
	// responses of the client, by key.
	Details, Responses json.RawMessage
}

// AnsweredInputs returns the input requests of tool calls that the client has answered in earlier
// runs.
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

// maxToolName limits the name of a tool in a journal, in bytes.
const maxToolName = 256

// calledTool returns the name of the tool of a host call of agent code; nil for other host calls.
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

// opSavedState is the operation that records the state of a call without a program.
const opSavedState = "pause"

// SaveState suspends a call without a program. kept is the state for the next run, and payload the
// payload of the operation ask. Earlier entries of the journal are dropped. [Journal.Answer] takes
// the responses.
func (j *Journal) SaveState(kept, payload []byte) Outcome {
	*j = Journal{seed: j.seed}
	j.add(journalEntry{kind: entryCall, seq: 1, op: opSavedState})
	j.add(journalEntry{kind: entryResponse, seq: 1, answer: kept})
	j.add(journalEntry{kind: entryCall, seq: 2, op: OpAsk, digest: digestOf(payload)})
	return Outcome{Suspended: []Ask{{Seq: 2, Payload: payload}}}
}

// SavedState returns the state from [Journal.SaveState] and the responses to its requests. ok is
// false if the call was not suspended by SaveState, or has no response.
func (j *Journal) SavedState() (kept, answers []byte, ok bool) {
	if j == nil || len(j.entries) != 4 || j.entries[0].op != opSavedState || j.entries[3].kind != entryResponse || j.entries[3].refusal != nil {
		return nil, nil, false
	}
	return j.entries[1].answer, j.entries[3].answer, true
}
