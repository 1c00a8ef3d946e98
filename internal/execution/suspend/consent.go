package suspend

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/internal/state"
)

// ConsentKey is the key of the request by which a user is asked to consent to a call.
const ConsentKey = "approval"

// AskConsent has the pause wait for the consent of the user to what the digest stands
// for, in the words of the message.
func (p *Pause) AskConsent(message string, to [32]byte) (open []state.Ask, err error) {
	// MCP wants the schema of a form to be that of an object with properties that are
	// flat; a consent has none, and is the action of the answer.
	params, err := json.Marshal(map[string]any{
		"message":         message,
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode what the user is asked: %w", err)
	}
	payload, err := json.Marshal(map[string]any{"requests": []Request{{Key: ConsentKey, Method: Elicit, Params: params}}})
	if err != nil {
		return nil, fmt.Errorf("encode what the user is asked: %w", err)
	}
	p.Consent = state.Consent{To: to, Asked: p.Consent.Asked + 1}
	p.Leg++
	return []state.Ask{{Payload: payload}}, nil
}

// AsksConsent reports whether the pause waits for the consent of the user, and for
// nothing else.
func (p *Pause) AsksConsent() bool { return p.Consent.To != [32]byte{} && !p.Consent.Given }

// consent takes the answer of the user.
func (p *Pause) consent(_ state.Ask, answers map[string]json.RawMessage) error {
	// A struct would take a member of another case for the one that was checked.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answers[ConsentKey], &members); err != nil {
		return fmt.Errorf("read the consent: %w", err)
	}
	p.Consent.Given = string(members["action"]) == `"accept"`
	return nil
}
