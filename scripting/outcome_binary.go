package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// The binary form of an outcome is a tag, and for a result its kind, the value with a length
// prefix, and the content. Other outcomes are JSON. The statements that ran precede the form of an
// outcome with coverage: a tag, and a bitmap with a length prefix.
const (
	outcomeResult = iota
	outcomeFailure
	outcomeSuspended
	outcomeRan
)

// maxRan limits the bitmap of the statements that ran. Even lowered scripts have fewer statements.
const maxRan = 1 << 17

// errOutcome is the error for bytes that are not an outcome. It repeats none of them.
var errOutcome = errors.New("not an outcome")

// AppendBinary appends the encoded outcome to dst.
func (o Outcome) AppendBinary(dst []byte) ([]byte, error) {
	if len(o.Ran) > 0 {
		w := journalWriter{out: append(dst, outcomeRan)}
		w.numbers(len(o.Ran))
		dst = append(w.out, o.Ran...)
	}
	if r := o.Result; r != nil {
		w := journalWriter{out: append(dst, outcomeResult)}
		w.numbers(int(r.Kind), len(r.JSON))
		w.out = append(w.out, r.JSON...)
		return append(w.out, r.Content...), nil
	}
	tag, value := byte(outcomeSuspended), any(o.Suspended)
	if o.Failure != nil {
		tag, value = outcomeFailure, o.Failure
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode outcome: %w", err)
	}
	return append(append(dst, tag), text...), nil
}

// cutRan returns the bitmap of an encoded outcome, if it has one, and what follows.
func cutRan(data []byte) (ran, rest []byte, ok bool) {
	if len(data) == 0 || data[0] != outcomeRan {
		return nil, data, true
	}
	r := journalReader{rest: data[1:]}
	ran, ok = r.text(maxRan)
	return ran, r.rest, ok
}

// RawOutcomeJSON returns the JSON that [Outcome.UnmarshalBinary] would decode, so that callers can
// check untrusted data first. It returns nil if there is none.
func RawOutcomeJSON(data []byte) []byte {
	_, data, _ = cutRan(data)
	if len(data) > 0 && (data[0] == outcomeFailure || data[0] == outcomeSuspended) {
		return data[1:]
	}
	return nil
}

// UnmarshalBinary decodes the output of [Outcome.AppendBinary]. It does not check that fields are
// valid JSON. The outcome keeps data.
func (o *Outcome) UnmarshalBinary(data []byte) error {
	ran, data, ok := cutRan(data)
	if !ok || len(data) == 0 {
		return errOutcome
	}
	read := Outcome{Ran: ran}
	switch tag, rest := data[0], data[1:]; tag {
	case outcomeResult:
		r := journalReader{rest: rest}
		kind, ok := r.number(int(Content))
		value, has := r.text(math.MaxInt32)
		if !ok || !has {
			return errOutcome
		}
		read.Result = &Result{Kind: ResultKind(kind), JSON: value}
		if read.Result.Kind == Content {
			read.Result.Content = r.rest
		}
	case outcomeFailure:
		read.Failure = &Failure{}
		if json.Unmarshal(rest, read.Failure) != nil || len(read.Failure.Stack) > maxFrames {
			return errOutcome
		}
	case outcomeSuspended:
		if json.Unmarshal(rest, &read.Suspended) != nil || len(read.Suspended) == 0 {
			return errOutcome
		}
	default:
		return errOutcome
	}
	*o = read
	return nil
}
