// Package replay judges calls that an audit log tells of by policies of today, and tells
// which of them would be decided otherwise.
//
// A [Replay] takes one [audit.Call] after the other. It makes a case of what the record
// holds, has it judged, and compares what policies say with what became of the call.
// What a record does not hold is never made up: where the decision depends on it, the
// call is counted as unknown, with the reason.
//
// It compares decisions, and not who made them. It counts no limits and runs no body, and
// of results, which no record holds, it knows what policies are sure of without them.
package replay
