package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/scripting"
)

func (x *execution) decodeOutcome(content []byte) (out scripting.Outcome, err error) {
	o, err := readOutcome(content)
	if err != nil {
		return out, err
	}
	failure, err := x.recorder.ApplyTail(o.tail, true)
	switch {
	case err != nil:
		return out, err
	case failure != nil:
		return scripting.Outcome{Failure: failure}, nil
	case o.fault != "":
		return out, &childError{truncate.Text(strings.ToValidUTF8(o.fault, "\uFFFD"), maxStderr)}
	}
	if out, err = readValid(o.outcome); err != nil {
		return scripting.Outcome{}, err
	}
	return out, x.recorder.CheckOutcome(out)
}

// judged returns an outcome, or ends a process that did not keep to the protocol.
func (x *execution) finalOutcome(ctx context.Context, p *process, out scripting.Outcome, err error) (scripting.Outcome, error) {
	var fault *childError
	switch {
	case errors.As(err, &fault):
		return scripting.Outcome{}, err
	case err != nil:
		p.kill(exitProtocol)
		<-p.exited
		return scripting.Outcome{}, p.exitErr()
	}
	if failure := out.Failure; failure != nil && (failure.Kind == scripting.Timeout || failure.Kind == scripting.Canceled) {
		if over := scripting.ContextFailure(ctx); over != nil {
			over.Stack = failure.Stack
			out.Failure = over
		}
	}
	return out, nil
}

// faultError is a failure of the executor in the process.
type childError struct{ text string }

// Error returns what the process says.
func (e *childError) Error() string { return e.text }

// wrapped is how much deeper JSON is within the failure or the list that it comes in.
const envelopeDepth = 2

// readSound reads an outcome, of which nothing is decoded before it has passed the
// gate.
func readValid(text []byte) (out scripting.Outcome, err error) {
	if inner := scripting.RawOutcomeJSON(text); inner != nil {
		limits := childLimits()
		limits.Depth += envelopeDepth
		if err := jsonguard.Check(inner, limits); err != nil {
			return out, fmt.Errorf("a process sends what is no outcome: %w", err)
		}
	}
	if err := out.UnmarshalBinary(text); err != nil {
		return out, err
	}
	return out, checkOutcome(out)
}

// sound checks that an outcome is one that a body can have: what ought to be JSON
// is, and of the form that the kind of the result promises to those who go on
// with it unread.
func checkOutcome(out scripting.Outcome) error {
	var texts [][]byte
	if r := out.Result; r != nil {
		texts = append(texts, r.JSON, r.Content)
	}
	if f := out.Failure; f != nil {
		texts = append(texts, f.Details)
	}
	for _, ask := range out.Suspended {
		texts = append(texts, ask.Payload)
	}
	for _, text := range texts {
		if len(text) > 0 {
			if err := checkJSON(text); err != nil {
				return err
			}
		}
	}
	if r := out.Result; r != nil && !matchesKind(r) {
		return errWire
	}
	return nil
}

// promised reports whether a result, whose parts are JSON, has those of its kind.
func matchesKind(r *scripting.Result) bool {
	switch r.Kind {
	case scripting.Nothing:
		return len(r.JSON) == 0
	case scripting.Text:
		return len(r.JSON) > 0 && r.JSON[0] == '"'
	case scripting.Content:
		return scripting.AreBlocks(r.Content)
	default:
		return len(r.JSON) > 0
	}
}
