package asking

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/internal/state"
)

// Request is one thing that a client is asked.
type Request struct {
	// Key is that of the answer, unique among all that is open.
	Key string `json:"key"`
	// Method is elicitation/create, sampling/createMessage or roots/list.
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Requests returns what the open asks of a call want to know, in order.
func Requests(asks []state.Ask) ([]Request, error) {
	var all []Request
	for _, ask := range asks {
		of, err := ParsePayload(ask.Payload)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// ParsePayload reads the payload of the operation ask.
func ParsePayload(payload []byte) ([]Request, error) {
	var p struct {
		Requests []Request `json:"requests"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read what is asked: %w", err)
	}
	return p.Requests, nil
}
