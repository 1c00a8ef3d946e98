// Package suspend suspends calls that request input from their client, and resumes them.
//
// A script that requests input is suspended: its journal records everything that it has done, and
// [Requests] returns its open input requests. A [Suspension] is the state of the call meanwhile,
// which can be sealed. [Suspension.ApplyResponses] adds the responses to the journal, so that the
// script can run again from the start without repeating its effects.
package suspend

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/scripting"
)

// Suspension is a call between two legs. The parts that the script can see are the same in every
// leg, as the replay must be deterministic.
type Suspension struct {
	// Agent is the JSON of agent from the first leg.
	Agent   []byte
	Journal *scripting.Journal
	// Plan is the plan that the user was asked to approve; nil if there was no dry run.
	Plan []byte
	// IsServerRequest reports whether the server itself made an input request. The script then gets
	// only the action of the response. Nil means that there are no such requests.
	IsServerRequest func(call.AskRequest) bool
	state.State
}

var errDamaged = errors.New("the state of a call is damaged")

// Seal returns the sealed suspension as text for the client.
func (s *Suspension) Seal(sealer *state.Sealer, asks []state.Ask, wait time.Duration, now time.Time) (string, error) {
	journal, err := s.Journal.MarshalBinary()
	if err != nil {
		return "", fmt.Errorf("write the journal: %w", err)
	}
	sealed := s.State
	sealed.Asks, sealed.Expires = asks, now.Add(wait)
	sealed.Journal = append(binary.AppendUvarint(nil, uint64(len(s.Agent))), s.Agent...)
	sealed.Journal = append(binary.AppendUvarint(sealed.Journal, uint64(len(s.Plan))), s.Plan...)
	sealed.Journal = append(sealed.Journal, journal...)
	return sealer.Seal(sealed)
}

// Open opens a sealed suspension. It must match want.
func Open(sealer *state.Sealer, text string, want state.Want) (*Suspension, error) {
	opened, err := sealer.Open(text, want)
	if err != nil {
		return nil, err
	}
	s := &Suspension{Journal: scripting.NewJournal(), State: opened}
	agent, rest, ok := cutPrefixed(opened.Journal)
	plan, rest, more := cutPrefixed(rest)
	if !ok || !more {
		return nil, errDamaged
	}
	if s.Agent = agent; len(plan) > 0 {
		s.Plan = plan
	}
	if err := s.Journal.UnmarshalBinary(rest); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return s, nil
}

// cutPrefixed splits off bytes with a length prefix.
func cutPrefixed(text []byte) (first, rest []byte, ok bool) {
	length, n := binary.Uvarint(text)
	if n <= 0 || length > uint64(len(text)-n) {
		return nil, nil, false
	}
	return text[n : n+int(length)], text[n+int(length):], true
}

// ArgumentsDigest returns the hash of arguments. It is the same for every JSON notation of them.
func ArgumentsDigest(args map[string]any) [sha256.Size]byte {
	// Decoded JSON always encodes, with sorted object members.
	text, _ := json.Marshal(args)
	return sha256.Sum256(text)
}

// ErrorMessage returns the message for a state that cannot be used. ok is false if the state may be
// valid, and the store has failed.
func ErrorMessage(err error) (message string, ok bool) {
	for _, known := range []error{errDamaged, state.ErrTampered, state.ErrForeign, state.ErrExpired, state.ErrChanged, state.ErrArguments, state.ErrLost, state.ErrNotStored} {
		if errors.Is(err, known) {
			return known.Error(), true
		}
	}
	return "", false
}

// Requests returns the input requests of the open asks, in order.
func Requests(asks []state.Ask) ([]call.AskRequest, error) {
	var all []call.AskRequest
	for _, ask := range asks {
		of, err := ParsePayload(ask.Payload)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// ParsePayload returns the input requests in the payload of an ask.
func ParsePayload(payload []byte) ([]call.AskRequest, error) {
	var p struct {
		Requests []call.AskRequest `json:"requests"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read what is asked: %w", err)
	}
	return p.Requests, nil
}

// ApprovalKey is the key of the request for an approval.
const ApprovalKey = "approval"

// RequestApproval suspends the call until the user approves the question with the digest. The
// message is the text for the user.
func (s *Suspension) RequestApproval(message string, digest [32]byte) (open []state.Ask, err error) {
	// MCP requires a form schema with an object of flat properties. An approval has none: the
	// response is its action.
	params, err := json.Marshal(map[string]any{
		"message":         message,
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode what the user is asked: %w", err)
	}
	payload, err := json.Marshal(map[string]any{"requests": []call.AskRequest{{Key: ApprovalKey, Method: MethodElicit, Params: params}}})
	if err != nil {
		return nil, fmt.Errorf("encode what the user is asked: %w", err)
	}
	s.Consent = state.Consent{To: digest, Asked: s.Consent.Asked + 1}
	s.Leg++
	return []state.Ask{{Payload: payload}}, nil
}

// AwaitsApproval reports whether the call waits for an approval, and nothing else.
func (s *Suspension) AwaitsApproval() bool { return s.Consent.To != [32]byte{} && !s.Consent.Given }

func (s *Suspension) recordApproval(_ state.Ask, answers map[string]json.RawMessage) error {
	// A struct would also match members with different case, which were not validated.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answers[ApprovalKey], &members); err != nil {
		return fmt.Errorf("read the consent: %w", err)
	}
	s.Consent.Given = string(members["action"]) == `"accept"`
	return nil
}
