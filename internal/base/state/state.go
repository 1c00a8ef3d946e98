package state

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// MaxLife is the maximum life of a sealed state.
const MaxLife = 10 * time.Minute

// State is a call that waits for its client: its owner, the valid responses, and
// everything that is needed to run it again from the start.
type State struct {
	Owner Owner
	// Definition is the hash of the called item, and Arguments the digest of the
	// arguments.
	Definition, Arguments [32]byte
	// Expires is the expiry in whole milliseconds.
	Expires time.Time
	// Nonce is the argument of [Store.Claim]. [Sealer.Seal] sets it.
	Nonce Nonce

	// Root is the id that all legs of the call share, and Leg the number of the
	// completed one.
	Root string
	Leg  int
	// Start is the start of the first leg, or of the first leg after the user's
	// approval.
	Start time.Time
	// Used is the total run time of the legs.
	Used time.Duration
	// Consent is the user's approval of the call.
	Consent Consent
	// Asks are the open input requests, and Journal is the encoded journal.
	Asks    []Ask
	Journal []byte
}

// Consent is the approval of a call by its user, which policies require before it runs.
type Consent struct {
	// To is a digest of the approval request; zero without one.
	To [32]byte
	// Given means that the user approved. Asked counts the legs that asked.
	Given bool
	Asked int
}

// Ask is an open input request.
type Ask struct {
	// Seq is the position of the request in the journal.
	Seq     int
	Payload []byte
}

// stateVersion is the version of the binary format.
const stateVersion = 3

// MarshalBinary returns the state as bytes for a private place, such as [Task.Held].
func (s State) MarshalBinary() ([]byte, error) {
	var e encoder
	s.encodeHead(&e)
	s.encodeBulk(&e)
	return e, nil
}

// UnmarshalBinary decodes the output of MarshalBinary. The state shares no memory with
// data.
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

// encodeHead appends the part that is always inside of a sealed state.
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

// encodeBulk appends the part that may be too large for a sealed state.
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

// Owner is the owner of a record: the identifying parts of a principal, and the agent
// that its credential is bound to, if any.
type Owner struct {
	ID     string
	Kind   identity.Kind
	Issuer string
	Agent  string
}

// OwnerOf returns the owner for a principal.
func OwnerOf(p identity.Principal) Owner {
	return Owner{ID: p.ID, Kind: p.Kind, Issuer: p.Issuer, Agent: p.Agent}
}

// key returns a unique string for the owner.
func (o Owner) Key() string {
	var e encoder
	e.owner(o)
	return string(e)
}
