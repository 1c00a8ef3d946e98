package suspend

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/schema"
)

// ApplyResponses adds the responses for all open requests to the journal. complete is false if one
// is missing: then nothing was added, and the client must be asked again. refused are the keys with
// an error response. An error means that a response does not have the required form.
func (s *Suspension) ApplyResponses(responses map[string]json.RawMessage, refused map[string]call.RPCError) (complete bool, err error) {
	answers := make([]map[string]json.RawMessage, len(s.Asks))
	for i, ask := range s.Asks {
		if answers[i], err = responsesFor(ask, responses, refused); answers[i] == nil || err != nil {
			return false, err
		}
	}
	take := s.recordResponses
	if s.AwaitsApproval() {
		take = s.recordApproval
	}
	for i, ask := range s.Asks {
		if err := take(ask, answers[i]); err != nil {
			return false, err
		}
	}
	s.Asks = nil
	return true, nil
}

// responsesFor returns the responses to an ask by key; nil if one is missing.
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

func (s *Suspension) recordResponses(ask state.Ask, answers map[string]json.RawMessage) error {
	requests, err := ParsePayload(ask.Payload)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if s.IsServerRequest != nil && s.IsServerRequest(r) {
			answers[r.Key] = actionOnly(answers[r.Key])
		}
	}
	answer, err := json.Marshal(map[string]any{"responses": answers})
	if err != nil {
		return fmt.Errorf("encode the answers: %w", err)
	}
	return s.Journal.Answer(ask.Seq, answer)
}

// actionOnly returns a response without its content.
func actionOnly(answer json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(answer, &members) // it was validated before
	// A parsed action always encodes.
	action, _ := json.Marshal(map[string]json.RawMessage{"action": members["action"]})
	return action
}

// The methods of requests.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// ValidateResponse checks the form of a response for its method, and its content against the form
// schema. The error is for the client.
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

// checkContent validates the content of a form. A client may omit the content if all members are
// optional.
func checkContent(r *call.AskRequest, content json.RawMessage) error {
	var params struct {
		Schema json.RawMessage `json:"requestedSchema"`
	}
	if r.Method != MethodElicit || json.Unmarshal(r.Params, &params) != nil || params.Schema == nil {
		return nil
	}
	form, problems := schema.Compile(params.Schema, diag.Range{}, nil)
	if problems.HasErrors() {
		// The script has set an invalid schema, which the client could not follow either.
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
