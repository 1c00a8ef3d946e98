package suspend

import (
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/state"
)

// Request is one thing that a client is asked.
type Request = call.AskRequest

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
