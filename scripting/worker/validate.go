package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/scripting"
)

// bounds are those of JSON from a process. There are as many tokens as fit: what
// a body makes is bounded in bytes alone.
func bounds() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxAnswer, Depth: 72, Tokens: maxAnswer, Halves: true}
}

// gated lets JSON from a process through the gate.
func gated(text []byte) error {
	if err := jsonguard.Check(text, bounds()); err != nil {
		return fmt.Errorf("a process sends what is no JSON: %w", err)
	}
	return nil
}

// answerLimits are those of JSON that goes to a process. How large it may be, the
// grants say.
func answerLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxPassedByAll, Depth: 600, Tokens: maxPassedByAll, Halves: true}
}

// gatedHost lets the answers of a host through the gate, before a process decodes them.
type gatedHost struct{ scripting.Host }

// Do refuses an answer that is no JSON.
func (g gatedHost) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	data, err := g.Host.Do(ctx, seq, op, payload)
	if err != nil || len(data) == 0 {
		return data, err
	}
	if err := jsonguard.Check(data, answerLimits()); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the answer is no JSON that a script can have: " + err.Error()}
	}
	return data, nil
}

// wrapped is how much deeper JSON is within the failure or the list that it comes in.
const wrapped = 2

// readSound reads an outcome, of which nothing is decoded before it has passed the
// gate.
func readSound(text []byte) (out scripting.Outcome, err error) {
	if inner := scripting.OutcomeJSON(text); inner != nil {
		limits := bounds()
		limits.Depth += wrapped
		if err := jsonguard.Check(inner, limits); err != nil {
			return out, fmt.Errorf("a process sends what is no outcome: %w", err)
		}
	}
	if err := out.UnmarshalBinary(text); err != nil {
		return out, err
	}
	return out, sound(out)
}

// sound checks that an outcome is one that a body can have: what ought to be JSON
// is, and of the form that the kind of the result promises to those who go on
// with it unread.
func sound(out scripting.Outcome) error {
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
			if err := gated(text); err != nil {
				return err
			}
		}
	}
	if r := out.Result; r != nil && !promised(r) {
		return errWire
	}
	return nil
}

// promised reports whether a result, whose parts are JSON, has those of its kind.
func promised(r *scripting.Result) bool {
	switch r.Kind {
	case scripting.Nothing:
		return len(r.JSON) == 0
	case scripting.Text:
		return len(r.JSON) > 0 && r.JSON[0] == '"'
	case scripting.Content:
		return blocks(r.Content)
	default:
		return len(r.JSON) > 0
	}
}

// blocks reports whether JSON is an array of objects that name their types.
func blocks(content []byte) bool {
	var all []struct{ Type string }
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &all) != nil {
		return false
	}
	return !slices.ContainsFunc(all, func(b struct{ Type string }) bool { return b.Type == "" })
}
