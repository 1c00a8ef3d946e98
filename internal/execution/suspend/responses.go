package suspend

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/schema"
)

// Resume gives the journal the answers to everything that is open. complete is
// false when some is missing: then nothing was answered, and the client is to be
// asked again. refused are the keys that the client answered with an error. An
// error says that an answer is not of the form that its request wants.
func (p *Suspension) ApplyResponses(responses map[string]json.RawMessage, refused map[string]call.RPCError) (complete bool, err error) {
	answers := make([]map[string]json.RawMessage, len(p.Asks))
	for i, ask := range p.Asks {
		if answers[i], err = responsesFor(ask, responses, refused); answers[i] == nil || err != nil {
			return false, err
		}
	}
	take := p.recordResponses
	if p.AwaitsApproval() {
		take = p.recordApproval
	}
	for i, ask := range p.Asks {
		if err := take(ask, answers[i]); err != nil {
			return false, err
		}
	}
	p.Asks = nil
	return true, nil
}

// answersTo returns the answers to an ask by their keys; nil when one is missing.
func responsesFor(ask state.Ask, responses map[string]json.RawMessage, refused map[string]call.RPCError) (map[string]json.RawMessage, error) {
	requests, err := ParsePayload(ask.Payload)
	if err != nil {
		return nil, err
	}
	answers := make(map[string]json.RawMessage, len(requests))
	for _, r := range requests {
		answer, given := responses[r.Key]
		_, declined := refused[r.Key]
		switch {
		case declined:
			answer = json.RawMessage(`{"action":"decline"}`)
		case !given:
			return nil, nil
		}
		if err := ValidateResponse(&r, answer); err != nil {
			return nil, err
		}
		answers[r.Key] = answer
	}
	return answers, nil
}

func (p *Suspension) recordResponses(ask state.Ask, answers map[string]json.RawMessage) error {
	requests, err := ParsePayload(ask.Payload)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if p.IsServerRequest != nil && p.IsServerRequest(r) {
			answers[r.Key] = actionOnly(answers[r.Key])
		}
	}
	answer, err := json.Marshal(map[string]any{"responses": answers})
	if err != nil {
		return fmt.Errorf("encode the answers: %w", err)
	}
	return p.Journal.Answer(ask.Seq, answer)
}

// actionOf returns an answer without what was filled in.
func actionOnly(answer json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(answer, &members) // it was checked before
	// An action that was read always encodes.
	action, _ := json.Marshal(map[string]json.RawMessage{"action": members["action"]})
	return action
}

// The methods of requests, and the member that each answer has.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// Check finds answers that are not of the form of their method, and contents
// that do not fit the schema of their form. The error is for the client.
func ValidateResponse(r *call.AskRequest, answer json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || members == nil {
		return fmt.Errorf("the answer to %s must be an object", r.Key)
	}
	if refusal := string(members["action"]); refusal == `"decline"` || refusal == `"cancel"` {
		return nil
	}
	wanted := map[string][]string{MethodElicit: {"action"}, MethodSample: {"role", "content"}, MethodRoots: {"roots"}}
	for _, name := range wanted[r.Method] {
		if members[name] == nil {
			return fmt.Errorf("the answer to %s needs the member %s", r.Key, name)
		}
	}
	if r.Method == MethodElicit && string(members["action"]) != `"accept"` {
		return fmt.Errorf("the action of the answer to %s must be accept, decline or cancel", r.Key)
	}
	return checkContent(r, members["content"])
}

// checkContent holds the content of a form to its schema. Of one whose members
// are all optional a client may leave the content out.
func checkContent(r *call.AskRequest, content json.RawMessage) error {
	var params struct {
		Schema json.RawMessage `json:"requestedSchema"`
	}
	if r.Method != MethodElicit || json.Unmarshal(r.Params, &params) != nil || params.Schema == nil {
		return nil
	}
	form, problems := schema.Compile(params.Schema, diag.Range{}, nil)
	if problems.HasErrors() {
		// What the body wrote is no schema; the client could not hold to it either.
		return nil
	}
	if content == nil {
		content = json.RawMessage("{}")
	}
	if violations := form.Validate(content); len(violations) > 0 {
		return fmt.Errorf("the answer to %s does not fit its schema: %s %s", r.Key, violations[0].Path, violations[0].Message)
	}
	return nil
}
