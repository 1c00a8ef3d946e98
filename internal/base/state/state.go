package state

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// MaxLife is how long a sealed state can be opened at most.
const MaxLife = 10 * time.Minute

// State is a call that waits for its client: whose it is, what it may be
// answered with, and all that is needed to run it again from the top.
type State struct {
	Owner Owner
	// Definition is the hash of what was called, Arguments the digest of what
	// it was called with.
	Definition, Arguments [32]byte
	// Expires is the end of the state, in whole milliseconds.
	Expires time.Time
	// Nonce is what [Store.Claim] is asked for. [Sealer.Seal] sets it.
	Nonce Nonce

	// Root is the id that all legs of the call share, and Leg the number of the
	// one that has ended.
	Root string
	Leg  int
	// Start is that of the first leg, or of the first that the user consented to.
	Start time.Time
	// Used is how long the legs have run.
	Used time.Duration
	// Consent is that of the user to the call.
	Consent Consent
	// Asks are open, and Journal is the journal, as bytes.
	Asks    []Ask
	Journal []byte
}

// Consent is what the user of a call was asked before it ran, because policies want it.
type Consent struct {
	// To is a digest of what the user is asked to consent to; zero when nothing is.
	To [32]byte
	// Given says that the user consents. Asked counts the legs that asked.
	Given bool
	Asked int
}

// Ask is something asked of the client and not yet answered.
type Ask struct {
	// Seq is the place of the ask in the journal.
	Seq     int
	Payload []byte
}

// stateVersion is the form of a state in bytes.
const stateVersion = 3

// MarshalBinary returns the state as bytes, for a place that nobody else reads
// or writes, such as [Task.Held].
func (s State) MarshalBinary() ([]byte, error) {
	var e encoder
	s.encodeHead(&e)
	s.encodeBulk(&e)
	return e, nil
}

// UnmarshalBinary reads what MarshalBinary wrote. The state shares no memory
// with data.
func (s *State) UnmarshalBinary(data []byte) error {
	d := decoder{data: bytes.Clone(data)}
	var read State
	read.decodeHead(&d)
	read.decodeBulk(&d)
	if err := d.end(); err != nil {
		return fmt.Errorf("read a state: %w", err)
	}
	*s = read
	return nil
}

// encodeHead appends what always travels with a sealed state.
func (s *State) encodeHead(e *encoder) {
	e.uint(stateVersion)
	e.owner(s.Owner)
	e.fixed(s.Definition[:])
	e.fixed(s.Arguments[:])
	e.millis(s.Expires)
	e.fixed(s.Nonce[:])
	e.string(s.Root)
	e.uint(uint64(s.Leg))
	e.time(s.Start)
	e.span(s.Used)
	e.fixed(s.Consent.To[:])
	e.bool(s.Consent.Given)
	e.uint(uint64(s.Consent.Asked))
}

func (s *State) decodeHead(d *decoder) {
	if d.uint() != stateVersion {
		d.failed = true
	}
	s.Owner = d.owner()
	d.fixed(s.Definition[:])
	d.fixed(s.Arguments[:])
	s.Expires = d.millis()
	d.fixed(s.Nonce[:])
	s.Root = d.string()
	s.Leg = d.small()
	s.Start = d.time()
	s.Used = d.span()
	d.fixed(s.Consent.To[:])
	s.Consent.Given = d.bool()
	s.Consent.Asked = d.small()
}

// encodeBulk appends what may be too large to travel.
func (s *State) encodeBulk(e *encoder) {
	e.uint(uint64(len(s.Asks)))
	for _, ask := range s.Asks {
		e.uint(uint64(ask.Seq))
		e.bytes(ask.Payload)
	}
	e.bytes(s.Journal)
}

func (s *State) decodeBulk(d *decoder) {
	for range d.small() {
		if d.failed {
			return
		}
		s.Asks = append(s.Asks, Ask{Seq: d.small(), Payload: d.bytes()})
	}
	s.Journal = d.bytes()
}

// Owner is whom a record belongs to: the parts of a principal that tell it from
// all others, and the agent that its credential is bound to, empty for none.
type Owner struct {
	ID     string
	Kind   identity.Kind
	Issuer string
	Agent  string
}

// OwnerOf returns the owner that a principal is.
func OwnerOf(p identity.Principal) Owner {
	return Owner{ID: p.ID, Kind: p.Kind, Issuer: p.Issuer, Agent: p.Agent}
}

// key returns text that no other owner has.
func (o Owner) key() string {
	var e encoder
	e.owner(o)
	return string(e)
}
