package identity

import "encoding/json"

// MarshalJSON encodes the agent as the RFC's AgentContext (section 10), under
// the names that scripts and hooks see: agent_id, model, request_id, metadata
// and verified. A model that is not named is null.
func (a Agent) MarshalJSON() ([]byte, error) {
	seen := struct {
		AgentID   string            `json:"agent_id"`
		Model     *string           `json:"model"`
		RequestID string            `json:"request_id"`
		Metadata  map[string]string `json:"metadata"`
		Verified  bool              `json:"verified"`
	}{AgentID: a.AgentID, RequestID: a.RequestID, Metadata: a.Metadata, Verified: a.Verified}
	if seen.AgentID == "" {
		seen.AgentID = AnonymousAgent
	}
	if a.Model != "" {
		seen.Model = &a.Model
	}
	if seen.Metadata == nil {
		seen.Metadata = map[string]string{}
	}
	return json.Marshal(seen)
}
