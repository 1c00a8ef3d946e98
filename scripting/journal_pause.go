package scripting

// opPause is what a body that is no program notes in its journal when it asks.
const opPause = "pause"

// Pause has a call wait whose body is no program: kept is what the next run of the body
// goes on from, and payload what is asked, that of the operation ask. What the journal
// held before it holds no longer. [Journal.Answer] takes the answers.
func (j *Journal) Pause(kept, payload []byte) Outcome {
	*j = Journal{seed: j.seed}
	j.add(entryRecord{kind: entryAsked, seq: 1, op: opPause})
	j.add(entryRecord{kind: entryAnswered, seq: 1, answer: kept})
	j.add(entryRecord{kind: entryAsked, seq: 2, op: opAsk, digest: digestOf(payload)})
	return Outcome{Suspended: []Ask{{Seq: 2, Payload: payload}}}
}

// Paused returns what [Journal.Pause] kept, and the answers to what was asked then; false
// where the call was not suspended so, or nothing has answered.
func (j *Journal) Paused() (kept, answers []byte, ok bool) {
	if j == nil || len(j.entries) != 4 || j.entries[0].op != opPause || j.entries[3].kind != entryAnswered || j.entries[3].refusal != nil {
		return nil, nil, false
	}
	return j.entries[1].answer, j.entries[3].answer, true
}
