// Package suspend is what a call that asks its client leaves behind, and what it
// goes on with.
//
// A body that asks is suspended: its journal holds everything that it has done,
// and [Requests] are what its client is to answer. [Pause] is the call meanwhile,
// as a state that can be sealed. [Resume] gives the answers to the journal, so
// that the body can be run again from the top without doing anything twice.
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

// Pause is a call between two legs. What of it the body can see is the same in
// every leg, or the body would not repeat itself.
type Suspension struct {
	// Agent is the JSON behind agent, as it was in the first leg.
	Agent   []byte
	Journal *scripting.Journal
	// Plan is what the user has been asked to approve of a program, in the form of who
	// rehearsed it; nil of what is not rehearsed.
	Plan []byte
	// Own reports whether a request is a question of the server itself: of its answer
	// the body learns the action alone. Nil means that none is.
	IsServerRequest func(call.AskRequest) bool
	state.State
}

var errDamaged = errors.New("the state of a call is damaged")

// Seal returns the pause as text for its client.
func (p *Suspension) Seal(sealer *state.Sealer, asks []state.Ask, wait time.Duration, now time.Time) (string, error) {
	journal, err := p.Journal.MarshalBinary()
	if err != nil {
		return "", fmt.Errorf("write the journal: %w", err)
	}
	sealed := p.State
	sealed.Asks, sealed.Expires = asks, now.Add(wait)
	sealed.Journal = append(binary.AppendUvarint(nil, uint64(len(p.Agent))), p.Agent...)
	sealed.Journal = append(binary.AppendUvarint(sealed.Journal, uint64(len(p.Plan))), p.Plan...)
	sealed.Journal = append(sealed.Journal, journal...)
	return sealer.Seal(sealed)
}

func Open(sealer *state.Sealer, text string, want state.Want) (*Suspension, error) {
	opened, err := sealer.Open(text, want)
	if err != nil {
		return nil, err
	}
	p := &Suspension{Journal: scripting.NewJournal(), State: opened}
	agent, rest, ok := cutPrefixed(opened.Journal)
	plan, rest, more := cutPrefixed(rest)
	if !ok || !more {
		return nil, errDamaged
	}
	if p.Agent = agent; len(plan) > 0 {
		p.Plan = plan
	}
	if err := p.Journal.UnmarshalBinary(rest); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return p, nil
}

// part cuts off bytes that have their length in front.
func cutPrefixed(text []byte) (first, rest []byte, ok bool) {
	length, n := binary.Uvarint(text)
	if n <= 0 || length > uint64(len(text)-n) {
		return nil, nil, false
	}
	return text[n : n+int(length)], text[n+int(length):], true
}

// Digest is that of arguments which are decoded JSON: the same for every way to
// write them.
func ArgumentsDigest(args map[string]any) [sha256.Size]byte {
	// Decoded JSON always encodes, with the members of objects in order.
	text, _ := json.Marshal(args)
	return sha256.Sum256(text)
}

// Refusal says why nothing goes on from a state, in words that are fit for its
// client: what a disk says is not.
func ErrorMessage(err error) string {
	for _, known := range []error{state.ErrTampered, state.ErrForeign, state.ErrExpired, state.ErrChanged, state.ErrArguments, state.ErrLost, state.ErrUnkept} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the request state cannot be used"
}

// Requests returns what the open asks of a call want to know, in order.
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

func ParsePayload(payload []byte) ([]call.AskRequest, error) {
	var p struct {
		Requests []call.AskRequest `json:"requests"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read what is asked: %w", err)
	}
	return p.Requests, nil
}

// ConsentKey is the key of the request by which a user is asked to consent to a call.
const ApprovalKey = "approval"

// AskConsent has the pause wait for the consent of the user to what the digest stands
// for, in the words of the message.
func (p *Suspension) RequestApproval(message string, to [32]byte) (open []state.Ask, err error) {
	// MCP wants the schema of a form to be that of an object with properties that are
	// flat; a consent has none, and is the action of the answer.
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
	p.Consent = state.Consent{To: to, Asked: p.Consent.Asked + 1}
	p.Leg++
	return []state.Ask{{Payload: payload}}, nil
}

// AsksConsent reports whether the pause waits for the consent of the user, and for
// nothing else.
func (p *Suspension) AwaitsApproval() bool { return p.Consent.To != [32]byte{} && !p.Consent.Given }

func (p *Suspension) recordApproval(_ state.Ask, answers map[string]json.RawMessage) error {
	// A struct would take a member of another case for the one that was checked.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answers[ApprovalKey], &members); err != nil {
		return fmt.Errorf("read the consent: %w", err)
	}
	p.Consent.Given = string(members["action"]) == `"accept"`
	return nil
}
