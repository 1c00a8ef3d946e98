package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/identity"
)

const (
	saltBytes = 16
	// maxText bounds a name, an id, a scope and a group, in bytes, and maxList
	// how many of them a record has.
	maxText, maxList = 256, 64
)

// Record is what is kept of a key. It is immutable.
type Record struct {
	ID string `json:"id"`
	// Name tells people what the key is for.
	Name string `json:"name"`
	// Principal is the id of who calls with the key. Keys may share one.
	Principal string   `json:"principal"`
	Scopes    []string `json:"scopes,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	// Agent is the id of the agent that the key is bound to, empty for none.
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
	// Expires and Revoked are zero for never.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Salt    []byte    `json:"salt"`
	Hash    []byte    `json:"hash"`
}

// NewRecord returns the record of a key, with what else is known of it.
func NewRecord(k Key, known Record) Record {
	r := known
	r.ID, r.Salt = k.ID, make([]byte, saltBytes)
	rand.Read(r.Salt)
	sum := hash(r.Salt, k.secret)
	r.Hash = sum[:]
	return r
}

// hash returns what is kept of a secret.
func hash(salt []byte, secret string) [sha256.Size]byte {
	var buffer [saltBytes + secretLen]byte
	return sha256.Sum256(append(append(buffer[:0], salt...), secret...))
}

// opens reports whether a secret is that of the record, in the same time for
// every secret.
func (r *Record) opens(secret string) bool {
	sum := hash(r.Salt, secret)
	return subtle.ConstantTimeCompare(sum[:], r.Hash) == 1
}

// ended returns why the key proves nothing any more, or nil.
func (r *Record) ended(now time.Time) error {
	switch {
	case !r.Revoked.IsZero():
		return ErrRevoked
	case !r.Expires.IsZero() && !now.Before(r.Expires):
		return ErrExpired
	}
	return nil
}

// who returns the principal of the key.
func (r *Record) who() identity.Principal {
	return identity.Principal{
		ID: r.Principal, Kind: identity.KindKey, Agent: r.Agent,
		Scopes: append([]string{}, r.Scopes...), Groups: append([]string{}, r.Groups...),
		Claims: map[string]any{"key": r.ID, "name": r.Name},
	}
}

// check returns what is wrong with a record. It repeats no text of it.
func (r *Record) check() error {
	var id [idBytes]byte
	switch {
	case len(r.ID) != idLen || !decode(id[:], r.ID):
		return errors.New("the id is not that of a key")
	case len(r.Salt) != saltBytes || len(r.Hash) != sha256.Size:
		return errors.New("the salt or the hash has not its length")
	case r.Created.IsZero():
		return errors.New("there is no time of creation")
	case r.Principal == identity.Anonymous().ID:
		return errors.New("nobody who has a key is anonymous; write another principal")
	case r.Agent == identity.AnonymousAgent:
		return errors.New("a key is not bound to an agent that does not name itself; write another agent")
	case len(r.Scopes) > maxList || len(r.Groups) > maxList:
		return errors.New("there are more than 64 scopes or groups")
	case !isText(r.Name) || !isText(r.Principal) || r.Agent != "" && !isText(r.Agent):
		return errors.New("the name, the principal or the agent is empty, longer than 256 bytes or has control characters")
	}
	for _, list := range [][]string{r.Scopes, r.Groups} {
		for _, word := range list {
			if !isWord(word) {
				return errors.New("a scope or a group is empty, longer than 256 bytes or has spaces or control characters")
			}
		}
	}
	return nil
}

func isText(text string) bool {
	if text == "" || len(text) > maxText || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func isWord(text string) bool {
	for _, r := range text {
		if unicode.IsSpace(r) {
			return false
		}
	}
	return isText(text)
}
