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

// finalOutcome returns the outcome, or kills a process that violated the protocol.
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

// childError is an error of the executor in the worker process.
type childError struct{ text string }

// Error returns the text from the process.
func (e *childError) Error() string { return e.text }

// envelopeDepth is the additional depth of JSON within a failure or a list.
const envelopeDepth = 2

// readValid reads an outcome. It checks JSON before it decodes it.
func readValid(text []byte) (out scripting.Outcome, err error) {
	if inner := scripting.RawOutcomeJSON(text); inner != nil {
		limits := childLimits()
		limits.Depth += envelopeDepth
		if err := jsonguard.Check(inner, limits); err != nil {
			return out, fmt.Errorf("invalid outcome from a worker process: %w", err)
		}
	}
	if err := out.UnmarshalBinary(text); err != nil {
		return out, err
	}
	return out, checkOutcome(out)
}

// checkOutcome checks that a script can have this outcome: JSON fields must be JSON, and must have
// the form of the kind of the result, because callers use them unread.
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

// matchesKind reports whether a result has the fields of its kind.
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
