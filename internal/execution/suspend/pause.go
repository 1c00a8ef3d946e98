package suspend

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/scripting"
)

// Pause is a call between two legs. What of it the body can see is the same in
// every leg, or the body would not repeat itself.
type Pause struct {
	// Agent is the JSON behind agent, as it was in the first leg.
	Agent   []byte
	Journal *scripting.Journal
	// Plan is what the user has been asked to approve of a program, in the form of who
	// rehearsed it; nil of what is not rehearsed.
	Plan []byte
	// Own reports whether a request is a question of the server itself: of its answer
	// the body learns the action alone. Nil means that none is.
	Own func(Request) bool
	state.State
}

var errPause = errors.New("the state of a call is damaged")

// Seal returns the pause as text for its client.
func (p *Pause) Seal(sealer *state.Sealer, asks []state.Ask, wait time.Duration, now time.Time) (string, error) {
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

// Open returns the pause that a text stands for, when it is what the caller wants.
func Open(sealer *state.Sealer, text string, want state.Want) (*Pause, error) {
	opened, err := sealer.Open(text, want)
	if err != nil {
		return nil, err
	}
	p := &Pause{Journal: scripting.NewJournal(), State: opened}
	agent, rest, ok := part(opened.Journal)
	plan, rest, more := part(rest)
	if !ok || !more {
		return nil, errPause
	}
	if p.Agent = agent; len(plan) > 0 {
		p.Plan = plan
	}
	if err := p.Journal.UnmarshalBinary(rest); err != nil {
		return nil, fmt.Errorf("%w: %w", errPause, err)
	}
	return p, nil
}

// part cuts off bytes that have their length in front.
func part(text []byte) (first, rest []byte, ok bool) {
	length, n := binary.Uvarint(text)
	if n <= 0 || length > uint64(len(text)-n) {
		return nil, nil, false
	}
	return text[n : n+int(length)], text[n+int(length):], true
}

// Digest is that of arguments which are decoded JSON: the same for every way to
// write them.
func Digest(args map[string]any) [sha256.Size]byte {
	// Decoded JSON always encodes, with the members of objects in order.
	text, _ := json.Marshal(args)
	return sha256.Sum256(text)
}
